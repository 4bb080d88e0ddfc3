# shellcheck shell=bash disable=SC2034,SC2154
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Only if it is named.
# Needs 4 GiB of memory.
#
# libfabric's own tests on RDMA devices (fabtests-config): those of `quick` that are for
# FI_EP_MSG. FABTESTS_BIN_DIR has to name the folder of their programs, in this file system.

tests=(
    "1500 message_endpoints_over_rxe__pass_as_expected fabtests rxe r0"
    "1500 message_endpoints_over_siw__pass_as_expected fabtests siw s0"
)

fabtests() { # device interface
    local address=${!1}
    if [ -z "${FABTESTS_BIN_DIR:-}" ]; then
        echo 'FABTESTS_BIN_DIR names no folder of fabtests'
        return 77
    fi
    FI_DAT_IFACE=$2 DAT_FABTESTS_ADDRESS=$address DAT_FABTESTS_LINKS=$1 DAT_FABTESTS_WINDOW=4 \
        DAT_FABTESTS_ONLY='-e msg|^fi_(msg( |_[^i]|$)|cm_data|(getinfo|dom|eq|cq|mr|cntr|setopt)_test)' \
        DAT_FABTESTS_LIMIT_S=300 DAT_FABTESTS_XML=/run/job/fabtests.$1.xml \
        bash "$DAT_SRCDIR/fabtests-config/run.sh" "$FABTESTS_BIN_DIR" quick
}
