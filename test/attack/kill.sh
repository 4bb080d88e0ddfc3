#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The kill test (kill.cpp says what it does): 60 s over TCP and over shared memory, at once.
#
#   bash test/attack/kill.sh
#   bash test/attack/kill.sh --seconds 3600      an hour over both
#   bash test/attack/kill.sh --link shm --seconds 10 --seed 7
#
# Uses the build folder DAT_BUILDDIR; without it one is made, and removed. The lines that
# begin with | are rows for the table of test/README.md. Status 1: something was violated.
set -u

. "$(dirname "${BASH_SOURCE[0]}")/build.sh"
need_program test/attack/kill
"$DAT_BUILDDIR/test/attack/kill" "$@"
