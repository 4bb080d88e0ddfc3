# shellcheck shell=bash disable=SC2034,SC2086,SC2154
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The sample programs of uDAPL 1.2 over each device (test/conformance/udat12/run.sh).

tests=(
    "150 samples_over_rxe samples rxe0 $rxe"
    "150 samples_over_siw samples siw0 $siw"
)

samples() { # adapter address
    FI_DAT_TRANSPORT=verbs bash "$DAT_SRCDIR/test/conformance/udat12/run.sh" device "$@"
}
