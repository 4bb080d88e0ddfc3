# shellcheck shell=bash disable=SC2034,SC2086,SC2154
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
tests=(
    "400 clauses_genuine genuine"
)
genuine() {
    export DAT_TRANSPORT=rxe
    /tmp/rpma-gen/rpma_clauses -j2 --timeout 90 --verbose=0 || true
    /tmp/rpma-gen/rpma_clauses --list | head -3
}
