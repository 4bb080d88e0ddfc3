# shellcheck shell=bash disable=SC2034,SC2086,SC2154
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Needs a second guest.
#
# Two hosts over rxe: this guest, and a second one at the other end of a wire.

tests=(
    "120 rping__is_served_by_the_other_host rping_far"
)

rping_far() {
    until_far_is_there
    start_far b rping -s -a $far -C 4 -S 60000 -V
    until on_far rdma resource show cm_id | grep -q 'state LISTEN .*comm rping'; do sleep 0.1; done
    rping -c -a $far -C 4 -S 60000 -V
}
