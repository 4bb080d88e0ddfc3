# shellcheck shell=bash disable=SC2034,SC2086,SC2154
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Only if it is named.
#
# The clauses and the states of the uDAPL libraries over each device, whole (test/shim); what
# is not so there is in applicable.cpp and cells.tsv. suite_dat.sh has some of it.

tests=(
    "100 ends_over_rxe over rxe ends"
    "100 ends_over_siw over siw ends"
    "600 states_over_rxe over rxe states"
    "900 states_over_siw over siw states"
    "600 clauses_over_rxe over rxe shim_clauses"
    "600 clauses_over_siw over siw shim_clauses"
    "600 clauses_of_1_2_over_rxe over rxe shim_clauses12"
    "600 clauses_of_1_2_over_siw over siw shim_clauses12"
)

over() { # rxe|siw program [arguments]
    export DAT_TRANSPORT=$1 CRITERION_JOBS=2
    local name=$2
    shift 2
    "$DAT_BUILDDIR/test/shim/$name" "$@"
}
