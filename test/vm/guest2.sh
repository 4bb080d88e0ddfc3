#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Runs in the second guest: an rxe device on the wire that joins it to the first, and a
# port on which it takes commands from there (far.sh), until the first has ended.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/wire.sh"

ulimit -l unlimited -n 16384
ulimit -c 0
ip link set lo up
set_up_wire $far
echo '##dat the second guest is there'
exec busybox nc -ll -p $far_port -e bash "$here/far_command.sh"
