#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Where the libraries look for dat.conf, and what they say on standard error (dat_conf(5),
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

# The same as root that may not read what is not to be read.
run_without_override() {
    local version=$1 etc=$2
    shift 2
    # shellcheck disable=SC2016
    env "$@" timeout -k 1 60 unshare -m --propagation private bash -c 'mount --bind "$1" /etc &&
        exec setpriv --bounding-set -dac_override,-dac_read_search "$2" given-name' run \
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

says() { # what pattern
    if grep -Eq "$2" "$work/said"; then
        echo "passed: $1"
    else
        echo "FAILED: $1: said:"
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

sed 's/"lo 0"/"198.51.100.77 0"/' "$work/given.conf" >"$work/missing.conf"
mkfifo "$work/fifo"
mkdir "$work/fifo-in-etc"
mkfifo "$work/fifo-in-etc/dat.conf"
perl -MSocket -e 'socket(my $s, PF_UNIX, SOCK_STREAM, 0) or die;
    bind($s, pack_sockaddr_un($ARGV[0])) or die' "$work/socket" || exit 1
ln -s loop "$work/loop"
declare -A special=([fifo]="$work/fifo" [socket]="$work/socket" [zero]=/dev/zero [tty]=/dev/ptmx)
printf '\xEF\xBB\xBF' | cat - "$work/given.conf" >"$work/marked.conf"
printf 'gi\0ven\n' | cat - "$work/given.conf" >"$work/zeroes.conf"
{
    cat "$work/given.conf"
    printf '#'
    head -c 4194304 /dev/zero | tr '\0' x
} | tee "$work/longer.conf" | head -c 4194304 >"$work/longest.conf"
{
    yes bad | head -n 100
    cat "$work/given.conf"
} >"$work/many.conf"
many=$(for ((line = 1; line <= 16; ++line)); do
    echo "libdat: $work/many.conf:$line:4: expected the version of the API, u2.0, u1.2 or k2.0;" \
        "the line is ignored"
done
echo "libdat: $work/many.conf: 84 more lines are ignored")
cp "$work/given.conf" "$work/secret.conf"
chmod 0 "$work/secret.conf"

grow() {
    local i
    cp "$work/given.conf" "$work/growing.conf"
    for ((i = 0; i < 100000; ++i)); do
        printf '# a line\n'
    done >>"$work/growing.conf"
}

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
    # What may block or never ends is not opened; what grows is read to a bound.
    for kind in fifo socket zero tty; do
        run $version "$work/both" DAT_OVERRIDE="${special[$kind]}"
        expect "$version, DAT_OVERRIDE names a $kind" '' \
            "libdat: ${special[$kind]}: not a regular file, which it has to be; taken for empty"
    done
    run $version "$work/both" DAT_OVERRIDE=/dev/null
    expect "$version, DAT_OVERRIDE is /dev/null" '' ''
    run $version "$work/both" DAT_OVERRIDE="$work/loop"
    expect "$version, DAT_OVERRIDE names a link to itself" '' \
        "libdat: $work/loop: Too many levels of symbolic links; taken for empty"
    run $version "$work/fifo-in-etc"
    expect "$version, /etc/dat.conf is a fifo" '' \
        'libdat: /etc/dat.conf: not a regular file, which it has to be; taken for empty'
    run $version "$work/both" DAT_OVERRIDE="$work/marked.conf"
    expect "$version, a byte-order mark" given-name ''
    run $version "$work/both" DAT_OVERRIDE="$work/zeroes.conf"
    expect "$version, a line with bytes of 0" given-name \
        "libdat: $work/zeroes.conf:1:3: expected text without a byte of 0; the line is ignored"
    run $version "$work/both" DAT_OVERRIDE="$work/longest.conf"
    expect "$version, a file of 4 MiB" given-name ''
    run $version "$work/both" DAT_OVERRIDE="$work/longer.conf"
    expect "$version, a file of more than 4 MiB" '' \
        "libdat: $work/longer.conf: longer than 4194304 bytes; taken for empty"
    run $version "$work/both" DAT_OVERRIDE="$work/many.conf"
    expect "$version, many bad lines" given-name "$many"
    grow & # bounded; ends with the run
    growing=$!
    run $version "$work/both" DAT_OVERRIDE="$work/growing.conf"
    kill $growing 2>/dev/null
    wait $growing 2>/dev/null
    if [ "$(<"$work/opened")" = given-name ] ||
        grep -q 'growing.conf: longer than' "$work/said"; then
        echo "passed: $version, a file that grows"
    else
        echo "FAILED: $version, a file that grows"
        failed=1
    fi
    run_without_override $version "$work/both" DAT_OVERRIDE="$work/secret.conf"
    expect "$version, DAT_OVERRIDE may not be read" '' \
        "libdat: $work/secret.conf: Permission denied; taken for empty"
    run $version "$work/bad"
    expect "$version, lines that cannot be used" linux-name "$bad"

    # dat_shim(7), ENVIRONMENT: where messages are on.
    ignored='libdat:mention_ignored()<warn> DAPL_CM_ARP_TIMEOUT_MS is ignored; see dat_shim(7)'
    for how in FI_LOG_LEVEL=warn DAPL_DBG_TYPE=1 DAT_DBG_TYPE=1; do
        run $version "$work/$first" DAPL_CM_ARP_TIMEOUT_MS=1 $how
        # Where in the sources a line is written is not compared.
        grep -v 'there is no IA of the name' "$work/said" | sed 's/():[1-9][0-9]*</()</' >"$work/rest"
        mv "$work/rest" "$work/said"
        expect "$version, $how: a variable that is ignored is named" $first-name "$ignored"
        # A name that is none, and an entry whose device is missing, with what there is.
        run $version "$work/$first" $how
        says "$version, $how: an unknown name" \
            "there is no IA of the name \"given-name\"; there are: .*lo\b.*; in dat.conf: $first-name"
        run $version "$work/neither" DAT_OVERRIDE="$work/missing.conf" $how
        says "$version, $how: an entry whose device is missing" \
            'the entry "given-name" of dat.conf says "198.51.100.77", .*; there are: .*lo\b.*; in dat.conf: given-name'
    done
    for how in NOTHING=1 DAPL_DBG_TYPE=0 DAT_DBG_TYPE=0; do
        run $version "$work/$first" DAPL_CM_ARP_TIMEOUT_MS=1 $how
        expect "$version, $how: nothing is said" $first-name ''
    done
done
exit $failed
