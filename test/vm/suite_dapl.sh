# shellcheck shell=bash disable=SC2034,SC2086,SC2154
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The programs of Debian's dapl2-utils, unmodified, on this libdat2 (test/shim/programs.sh):
# against themselves on the genuine libdat2 and libdaplofa over siw, where this library is
# in a network namespace without RDMA device.

tests=(
    "300 dtest_here__is_served_by_the_genuine_library across s0 s1 $siw"
    "300 dtest_here__serves_the_genuine_library across s1 s0 $soft"
)

# Both sides of dtest read at once what the other's read writes to. siw sends it without a
# copy, so it may change behind its CRC, and the connection break: none is asked for here.
across() { # server-device client-device server-address
    FI_DAT_CRC=off DAT_PROGRAM_LIMIT=100 bash "$DAT_SRCDIR/test/shim/programs.sh" across soft "$@"
}
