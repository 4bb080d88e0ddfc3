# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# To be sourced by the commands of this folder: a build folder with a program in it.

root=$(cd "${DAT_SRCDIR:-$(dirname "${BASH_SOURCE[0]}")/../..}" && pwd) || exit 1
. "$root/util/common.sh"

# Where DAT_BUILDDIR names no folder, builds the provider and program $1 in a temporary one.
# Sets and exports DAT_BUILDDIR. Ends the script where the program cannot be built.
need_program() { # path below the build folder
    if [ -z "${DAT_BUILDDIR:-}" ]; then
        work=$(mktemp -d "${TMPDIR:-/tmp}/dat-attack.XXXXXX") || exit 1
        trap 'rm -rf "$work"' EXIT
        trap 'exit 129' HUP
        trap 'exit 130' INT
        trap 'exit 143' TERM
        (
            copy_source "$root" "$work/source" && mkdir "$work/build" && cd "$work/source" &&
                autoreconf -fi && cd "$work/build" &&
                ../source/configure -q --without-criterion --without-rapidcheck &&
                make -j"$(nproc)" libdat-fi.la "$1"
        ) >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; exit 1; }
        DAT_BUILDDIR=$work/build
    fi
    DAT_BUILDDIR=$(cd "$DAT_BUILDDIR" && pwd) || exit 1
    export DAT_BUILDDIR
    [ -x "$DAT_BUILDDIR/$1" ] || { echo "$DAT_BUILDDIR/$1 was not built" >&2; exit 1; }
}
