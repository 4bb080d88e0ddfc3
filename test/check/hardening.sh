#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What configure says of hardening is in what was built: relocations are read-only and done at the
# start (RELRO, BIND_NOW), no segment is writable and executable, functions with buffers have a
# canary, and, where the code is optimized, the C library's functions are their fortified ones. With
# --disable-hardening, and with a sanitizer, nothing is asked for.
# Usage: hardening.sh [FILE...]; by default all libraries that were built: the provider, uDAPL, librpma.
set -u
build=${DAT_BUILDDIR:-.}
files=("$@")
if [ $# -eq 0 ]; then
    files=("$build/.libs/libdat-fi.so")
    [ "${DAT_UDAPL:-yes}" = no ] || files+=("$build/.libs/libdat2.so.2" "$build/.libs/libdat.so.1")
    [ "${DAT_RPMA:-yes}" = no ] || files+=("$build/.libs/librpma.so.0")
fi
substituted() { sed -nE "s/^S\[\"$1\"\]=\"(.*)\"$/\1/p" "$build/config.status"; }
flags=" $(substituted DAT_CXXFLAGS) $(substituted DAT_CPPFLAGS) $(substituted DAT_LDFLAGS) $(substituted CPPFLAGS) "
case $flags in
*-fsanitize=*) echo 'SKIP: built with a sanitizer'; exit 77 ;;
esac
if [ "$(substituted enable_hardening)" = no ]; then
    case $flags in
    *-fstack-protector-strong* | *-z,now*) echo "with --disable-hardening: $flags"; exit 1 ;;
    esac
    echo 'configured with --disable-hardening'
    exit 0
fi

bad=0
complain() {
    echo "$file: $*"
    bad=1
}
# The file needs a function whose name matches.
needs() { nm -D --undefined-only "$file" | awk '{print $NF}' | grep -qE "$1"; }
for file in "${files[@]}"; do
    [ -f "$file" ] || { complain 'is not there'; continue; }
    headers=$(readelf -lW "$file") dynamic=$(readelf -dW "$file")
    grep -q GNU_RELRO <<<"$headers" || complain 'no part is read-only after relocation (GNU_RELRO)'
    grep -qE '\((BIND_NOW|FLAGS)\).*BIND_NOW|\(FLAGS_1\).*NOW' <<<"$dynamic" ||
        complain 'functions are bound when they are first called (BIND_NOW is missing)'
    grep -E '^  GNU_STACK' <<<"$headers" | grep -q 'RW ' || complain 'the stack is executable'
    ! grep -E '^  LOAD' <<<"$headers" | grep -q 'RWE' || complain 'a segment is writable and executable'
    ! grep -q '(TEXTREL)' <<<"$dynamic" || complain 'relocations write to code (TEXTREL)'
    case $flags in
    *-fstack-protector-strong*) needs '^__stack_chk_fail' || complain 'no function has a canary' ;;
    esac
    case $flags in
    *-D_FORTIFY_SOURCE=*) needs '_chk(@|$)' || complain 'no fortified function is called' ;;
    esac
done
[ $bad -eq 0 ] && echo "${#files[@]} files:$flags"
exit $bad
