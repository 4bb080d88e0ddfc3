# shellcheck shell=bash disable=SC2034,SC2086,SC2154
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The guest itself: its devices are there, and carry the field's own programs.

tests=(
    "30 rping_over_siw rping_with_itself $siw"
    "30 rping_over_rxe rping_with_itself $rxe"
)

rping_with_itself() { # address
    rping -s -a "$1" -C 2 -S 100 -V &
    local server=$!
    until_listening rping
    rping -c -a "$1" -C 2 -S 100 -V && wait $server
}
