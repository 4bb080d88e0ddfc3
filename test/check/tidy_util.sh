#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What tidy.sh does, of the commands.
exec bash "$(dirname "${BASH_SOURCE[0]}")/tidy.sh" util
