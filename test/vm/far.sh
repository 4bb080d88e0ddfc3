#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Runs a command in the second guest, from the first, with this input and output. The
# first line of the output is its process id there.
#
#   far.sh COMMAND...
. "$(dirname "${BASH_SOURCE[0]}")/wire.sh"

{
    printf '%q ' "$@"
    echo
    exec cat
} | exec busybox nc $far $far_port
