#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The manual pages are well-formed: mandoc finds nothing to warn of.
set -u
. "$(dirname "${BASH_SOURCE[0]}")/sources.sh"

command -v mandoc >/dev/null || skip 'mandoc is not installed (Debian: mandoc)'
mapfile -t pages < <(sources man -- '*.[1-8]')
[ ${#pages[@]} -gt 0 ] || { echo 'no manual page was found under man/'; exit 1; }
mandoc -T lint -W warning "${pages[@]}" || exit 1
echo "${#pages[@]} manual pages are well-formed"
