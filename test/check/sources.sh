# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# For the checks, to be sourced: where the sources are and which files are ours.

cd "${DAT_SRCDIR:-$(dirname "${BASH_SOURCE[0]}")/../..}" || exit 1

# Ends the check as skipped, with the reason; automake knows 77.
skip() {
    echo "skipped: $*"
    exit 77
}

# Prints the paths under the given places whose name matches one of the patterns
# after `--`, sorted. Example: sources prov test -- '*.cpp' '*.h'
sources() {
    local places=() names=()
    while [ $# -gt 0 ] && [ "$1" != -- ]; do places+=("$1"); shift; done
    shift
    for pattern; do names+=(-o -name "$pattern"); done
    find "${places[@]}" \( -name .git -o -name .deps -o -name .libs -o -name 'build*' \) -prune \
        -o -type f \( "${names[@]:1}" \) -print | sort
}
