#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# From a bare Debian 12, as root, to a provider that works: installs the
# packages, builds, installs, and runs the main job (util/main_job.sh). Without
# root it does the same where the packages are there already.
#
#   bash util/quickstart.sh
#
# PREFIX=DIR   where to install (default: $HOME/.local/dat)
#
# Nothing is written outside PREFIX except the packages and a temporary folder,
# which is removed at the end.
set -u

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/util/common.sh"
prefix=${PREFIX:-${HOME:-/root}/.local/dat}
case $prefix in
/*) ;;
*) prefix=$PWD/$prefix ;;
esac

work=$(mktemp -d "${TMPDIR:-/tmp}/dat-quickstart.XXXXXX") || exit 1
step=
clean_up() {
    [ -z "$step" ] || end_session "$step"
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Runs a command quietly; if it fails shows the end of what it said and gives up.
quietly() { # title command...
    local title=$1
    shift
    printf '%s ...\n' "$title"
    setsid -w "$@" >"$work/log" 2>&1 &
    step=$!
    wait "$step" || {
        step=
        tail -n 40 "$work/log"
        printf '\nFAILED: %s. The lines above say why.\n' "$title"
        exit 1
    }
    step=
}

quietly '1/5 installing the Debian packages that are missing' \
    bash "$root/util/packages.sh" build run
copy_source "$root" "$work/source" || exit 1
quietly '2/5 configuring' \
    bash -c 'cd "$1" && autoreconf -fi && ./configure --prefix="$2" --libdir="$2/lib" \
        --without-criterion --without-rapidcheck' - "$work/source" "$prefix"
quietly "3/5 building" make -C "$work/source" -j"$(nproc)"
quietly "4/5 installing into $prefix" make -C "$work/source" install
echo '5/5 running the main job'
echo
setsid -w bash "$root/util/main_job.sh" "$prefix" &
step=$!
wait "$step"
status=$?
step=

echo
if [ $status -ne 0 ]; then
    echo "FAILED: dat was built and installed into $prefix, but the main job did not succeed."
    echo "Run it again with: FI_LOG_LEVEL=warn bash util/main_job.sh $prefix"
    exit 1
fi
cat <<END
dat works on this machine. It is installed in $prefix.

To use it, tell any libfabric program where it is and choose it:

    export FI_PROVIDER_PATH=$prefix/lib/libfabric
    export FI_PROVIDER=dat
    fi_info -p dat

uDAPL programs run on it with

    LD_LIBRARY_PATH=$prefix/lib/dat

Its manual page is $prefix/share/man/man7/fi_dat.7.
END
