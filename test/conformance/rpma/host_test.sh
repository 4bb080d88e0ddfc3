#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# See run.sh.
exec bash "$(dirname "${BASH_SOURCE[0]}")/run.sh" host
