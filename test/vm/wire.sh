# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Sourced in both guests: the wire between them, and how the first speaks to the second.

export near=203.0.113.1 far=203.0.113.2 # the ends of the wire, each with rxe
far_port=7

# The one interface that is no loopback and no veth becomes far0, with rxe on it.
set_up_wire() { # address
    local device
    device=$(basename "$(dirname /sys/bus/virtio/drivers/virtio_net/*/net/*/address)")
    ip link set "$device" name wire0
    ip addr add "$1/24" dev wire0
    ip link set wire0 up
    rdma link add rxe_wire type rxe netdev wire0
}
