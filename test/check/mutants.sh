#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Each mutant of test/mutants/list still changes something in the sources.
exec bash "$(dirname "${BASH_SOURCE[0]}")/../mutants/run.sh" --check
