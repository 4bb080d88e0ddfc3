#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Other compilers, and C++23: each source file of the libraries and the commands is looked at by each
# compiler without being made (-fsyntax-only), and a warning is an error. By name, since it takes some
# minutes for each:
#
#   bash test/compilers.sh [COMPILER STANDARD]...
#
# By default those of g++-12, g++-13, clang++-14 and clang++-16 that are installed, with c++20 and
# c++23. STANDARD c++23 is c++2b to compilers that have no other name for it.
#
# DAT_COMPILER_ROOT=FOLDER   a system of its own, in which the compilers are. Debian 12 has no g++ 13; as root:
#
#   debootstrap --variant=minbase --include="g++-13,$(bash util/packages.sh --list build | paste -sd,)" trixie FOLDER
#
# It looks at the sources in a copy, which it removes.
set -u

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/util/common.sh"
system=${DAT_COMPILER_ROOT:-}
inside() {
    if [ -z "$system" ]; then "$@"; else chroot "$system" env -i PATH=/usr/bin:/bin "$@"; fi
}
wanted=("$@")
if [ $# -eq 0 ]; then
    for compiler in g++-12 g++-13 clang++-14 clang++-16; do
        if inside sh -c 'command -v "$1"' - $compiler >/dev/null; then
            wanted+=("$compiler" c++20 "$compiler" c++23)
        fi
    done
fi
[ ${#wanted[@]} -gt 0 ] || { echo 'SKIP: no such compiler is installed'; exit 77; }
[ $((${#wanted[@]} % 2)) -eq 0 ] || { sed -n 's/^#   \(bash test.*\)/usage: \1/p' "${BASH_SOURCE[0]}" >&2; exit 2; }

# In that system the copy has to be seen.
work=$(TMPDIR=${system:+$system/tmp} mktemp -d) || exit 1
source=$work/source
there=${source#"$system"}
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

copy_source "$root" "$source" &&
    (cd "$source" && autoreconf -fi && inside sh -c 'cd "$1" && ./configure -q --enable-commands CXX="$2"' - \
        "$there" "${wanted[0]}" && make -s util/trace/page.inc util/doctor/tested.h) >"$work/log" 2>&1 || { tail "$work/log"; exit 1; }
# "FILE FLAGS..." of each, as make would compile it.
(cd "$source" && make -n all 2>/dev/null) |
    sed -nE "s/.* (-DHAVE_CONFIG_H .*) -MT .* -c -o .*\`([^ ]*\.cpp)$/\2 \1/p" |
    sed -E 's/ -(std=|O|g|f)[^ ]*//g; s/ -D_FORTIFY_SOURCE=2//' | LC_ALL=C sort -u >"$work/files"
[ "$(wc -l <"$work/files")" -gt 150 ] || { echo 'these are not all source files:'; cat "$work/files"; exit 1; }

failed=0
set -- "${wanted[@]}"
while [ $# -gt 0 ]; do
    compiler=$1 standard=$2
    shift 2
    flag=$standard
    inside "$compiler" -std="$flag" -fsyntax-only -x c++ /dev/null 2>/dev/null || flag=${standard/23/2b}
    # A line is a file and its flags.
    if inside sh -c 'cd "$1" && shift && exec xargs -L 1 -P "$(nproc)" "$@"' - "$there" \
        "$compiler" -std="$flag" -fsyntax-only -Werror <"$work/files" >"$work/log" 2>&1; then
        echo "ok: $compiler, $flag: $(wc -l <"$work/files") files"
    else
        grep -E 'error|warning' "$work/log" | tail -n 30
        echo "FAILED: $compiler, $flag"
        failed=1
    fi
done
exit $failed
