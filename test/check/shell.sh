#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Nothing in the scripts is warned of by shellcheck; .shellcheckrc says what it is not to look at.
set -u
. "$(dirname "${BASH_SOURCE[0]}")/sources.sh"
command -v shellcheck >/dev/null || skip 'shellcheck is not installed'
mapfile -t scripts < <(sources util test fabtests-config .ci -- '*.sh' run init)
[ ${#scripts[@]} -gt 50 ] || { echo "only ${#scripts[@]} scripts were found"; exit 1; }
shellcheck -S warning "${scripts[@]}" && echo "${#scripts[@]} scripts, nothing to warn of"
