#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Where uDAPL 1.2 looks for dat.conf: in the place of Solaris, and where nothing is there in
# that of Linux (U-49, dat.conf(5)). With an /etc of its own, in a mount namespace that ends
# with each run. Exit 77, with the reason, where there can be none.
set -u

sample=${DAT_BUILDDIR:-.}/test/conformance/udat12/messages
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
export FI_PROVIDER=none
unset DAT_OVERRIDE

skip() {
    echo "SKIP: $*"
    exit 77
}

unshare -m true 2>/dev/null || skip 'this user cannot make a mount namespace'

# Which of the two names can be opened; the folder $1 is /etc meanwhile.
opened() {
    local name
    for name in solaris linux; do
        # shellcheck disable=SC2016
        timeout -k 1 60 unshare -m --propagation private bash -c '
            mount --bind "$1" /etc || exit 1
            coproc exec "$2" server "$3-name" 2>&1
            pid=$!
            read -r -t 50 -u "${COPROC[0]}" line
            kill -KILL $pid
            wait $pid
            [[ $line == "port "* ]]' opened "$1" "$sample" $name 2>/dev/null && echo $name
    done
}

expect() { # what folder names...
    local what=$1 said
    said=$(opened "$2" | tr '\n' ' ')
    shift 2
    if [ "$said" = "${*:+$* }" ]; then
        echo "passed: $what: ${said:-neither}"
    else
        echo "FAILED: $what: names of $said, not of $*"
        failed=1
    fi
}

mkdir -p "$work/neither" "$work/linux" "$work/both/dat"
echo 'linux-name u1.2 nonthreadsafe default lib.so dapl.1.2 "lo 0" ""' |
    tee "$work/linux/dat.conf" >"$work/both/dat.conf"
echo 'solaris-name u1.2 nonthreadsafe default udapl_tavor.so.1 SUNW.1.0 "lo 0" "driver_name=tavor"' \
    >"$work/both/dat/dat.conf"
expect 'no file' "$work/neither"
expect '/etc/dat.conf alone' "$work/linux" linux
expect '/etc/dat/dat.conf besides' "$work/both" solaris
exit $failed
