#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Where the libraries look for dat.conf, and what they say on standard error (dat.conf(5),
# dat_shim(7)): uDAPL 1.2 in the place of Solaris, and where nothing is there in that of Linux,
# 2.0 the other way round (U-49), each in that of DAT_OVERRIDE alone where it is set. With an
# /etc of its own, in a mount namespace that ends with each run. Exit 77, with the reason, where
# there can be none.
set -u

programs=${DAT_BUILDDIR:-.}/test/shim
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
export FI_PROVIDER=none
unset DAT_OVERRIDE FI_LOG_LEVEL DAPL_DBG_TYPE DAT_DBG_TYPE

skip() {
    echo "SKIP: $*"
    exit 77
}

unshare -m true 2>/dev/null || skip 'this user cannot make a mount namespace'

# What a program of each version opens and says; the folder $1 is /etc meanwhile.
run() { # version folder [variable=value...]
    local version=$1 etc=$2
    shift 2
    # shellcheck disable=SC2016
    env "$@" timeout -k 1 60 unshare -m --propagation private \
        bash -c 'mount --bind "$1" /etc && exec "$2" solaris-name linux-name given-name' run \
        "$etc" "$programs/names$version" >"$work/opened" 2>"$work/said"
}

expect() { # what names stderr
    local opened said
    opened=$(tr '\n' ' ' <"$work/opened")
    said=$(<"$work/said")
    if [ "$opened" = "${2:+$2 }" ] && [ "$said" = "$3" ]; then
        echo "passed: $1"
    else
        echo "FAILED: $1: opened ${opened:-nothing}, not ${2:-nothing}; said:"
        sed 's/^/    /' "$work/said"
        failed=1
    fi
}

entry() { # name version
    echo "$1-name u$2 nonthreadsafe default lib.so dat.$2 \"lo 0\" \"\""
}

mkdir -p "$work/neither" "$work/linux" "$work/solaris/dat" "$work/both/dat" "$work/bad"
for version in 1.2 2.0; do
    entry linux $version | tee -a "$work/linux/dat.conf" >>"$work/both/dat.conf"
    entry solaris $version | tee -a "$work/solaris/dat/dat.conf" >>"$work/both/dat/dat.conf"
    entry given $version >>"$work/given.conf"
done
{
    echo '# a comment'
    echo 'solaris-name u2.0 sometimes default lib.so dat.2.0 "lo 0" ""'
    entry linux 2.0
    entry linux 1.2
    echo 'given-name u2.0 nonthreadsafe default lib.so dat.2.0 "lo 0'
} >"$work/bad/dat.conf"
bad='libdat: /etc/dat.conf:2:19: expected threadsafe or nonthreadsafe; the line is ignored
libdat: /etc/dat.conf:5:54: expected a closing quote; the line is ignored'

for version in 12 20; do
    first=solaris
    [ $version = 12 ] || first=linux
    run $version "$work/neither"
    expect "$version, no file" '' ''
    run $version "$work/linux"
    expect "$version, /etc/dat.conf alone" linux-name ''
    run $version "$work/solaris"
    expect "$version, /etc/dat/dat.conf alone" solaris-name ''
    run $version "$work/both"
    expect "$version, both" $first-name ''
    run $version "$work/both" DAT_OVERRIDE="$work/given.conf"
    expect "$version, DAT_OVERRIDE" given-name ''
    run $version "$work/both" DAT_OVERRIDE=/nowhere
    expect "$version, DAT_OVERRIDE names no file" '' \
        'libdat: /nowhere: No such file or directory; taken for empty'
    run $version "$work/both" DAT_OVERRIDE=/usr
    expect "$version, DAT_OVERRIDE names a folder" '' 'libdat: /usr: Is a directory; taken for empty'
    run $version "$work/bad"
    expect "$version, lines that cannot be used" linux-name "$bad"

    # dat_shim(7), ENVIRONMENT: where messages are on.
    ignored='libdat: warning: DAPL_CM_ARP_TIMEOUT_MS is ignored; see dat_shim(7)'
    for how in FI_LOG_LEVEL=warn DAPL_DBG_TYPE=1 DAT_DBG_TYPE=1; do
        run $version "$work/$first" DAPL_CM_ARP_TIMEOUT_MS=1 $how
        expect "$version, $how: a variable that is ignored is named" $first-name "$ignored"
    done
    for how in NOTHING=1 DAPL_DBG_TYPE=0 DAT_DBG_TYPE=0; do
        run $version "$work/$first" DAPL_CM_ARP_TIMEOUT_MS=1 $how
        expect "$version, $how: nothing is said" $first-name ''
    done
done
exit $failed
