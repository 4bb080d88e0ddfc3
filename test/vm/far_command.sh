#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Runs in the second guest, once for each command that comes from the first (far.sh): its
# first line is the command, then it is the command's input. Answers with the process id
# first, which the command keeps.
IFS= read -r command
echo $$
eval "exec $command"
