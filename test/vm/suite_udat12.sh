# shellcheck shell=bash disable=SC2034,SC2086,SC2154
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Only if it is named.
#
# The sample programs of uDAPL 1.2 over rxe (test/conformance/udat12/run.sh).

tests=(
    "100 many_over_rxe sample rxe0 $rxe many"
    "100 messages_over_rxe sample rxe0 $rxe messages"
    "100 ring_over_rxe sample rxe0 $rxe ring"
    "100 shared_over_rxe sample rxe0 $rxe shared"
    "100 many_over_siw sample siw0 $siw many"
    "100 messages_over_siw sample siw0 $siw messages"
    "100 ring_over_siw sample siw0 $siw ring"
    "100 shared_over_siw sample siw0 $siw shared"
)

sample() { # adapter address sample
    FI_DAT_TRANSPORT=verbs bash "$DAT_SRCDIR/test/conformance/udat12/run.sh" device "$@"
}
