# shellcheck shell=bash disable=SC2034,SC2086,SC2154
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The sample programs of uDAPL 1.2 over rxe (test/conformance/udat12/run.sh). Over siw they are
# in suite_clauses.sh, by name: there they do not pass each time.

tests=(
    "150 samples_over_rxe samples rxe0 $rxe"
)

samples() { # adapter address
    FI_DAT_TRANSPORT=verbs bash "$DAT_SRCDIR/test/conformance/udat12/run.sh" device "$@"
}
