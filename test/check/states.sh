#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Each row of the two state tables is raised by the provider itself, outside of test/, unless the
# table says "Not raised:" and why. Neither is a row named there that is raised, or is none.
set -u
cd "${DAT_SRCDIR:-$(dirname "${BASH_SOURCE[0]}")/../..}" || exit 1

status=0
complain() {
    echo "$1"
    status=1
}

look_at() { # table, macro of a row, enumeration of the stimuli
    local row rows raised excepted
    rows=$(sed -n "s/^$2(\\([a-z_]*\\),.*/\\1/p" "$1")
    [ -n "$rows" ] || complain "$1 has no row that begins with $2("
    raised=$(grep -rhoE "\\b$3::[a-z_]+" prov --include='*.cpp' --include='*.h' | sed 's/.*:://' | sort -u)
    excepted=$(sed -n 's/^\/\/ Not raised: \([a-z_]*\).*/\1/p' "$1")
    for row in $rows; do
        if grep -qx "$row" <<<"$raised"; then
            ! grep -qx "$row" <<<"$excepted" || complain "$1: $row is raised, and is said not to be"
        else
            grep -qx "$row" <<<"$excepted" || complain "$1: nothing in prov raises $row"
        fi
    done
    for row in $excepted; do
        grep -qx "$row" <<<"$rows" || complain "$1: $row, which is said not to be raised, is no row"
    done
}

look_at prov/dat/core/ep_state.def DAT_EP_ROW Stimulus
look_at prov/dat/core/rdm_peer.def DAT_RDM_ROW RdmStimulus
exit $status
