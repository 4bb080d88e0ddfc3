#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# No word is misspelt as codespell knows it, in what people write and read.
set -u
. "$(dirname "${BASH_SOURCE[0]}")/sources.sh"
command -v codespell >/dev/null || skip 'codespell is not installed'
# Names and abbreviations: DtoRing, kNo, kOwn, INOUT, bu (busy), te (in man pages).
words=dtoring,kno,kown,inout,bu,te
mapfile -t files < <(
    sources prov include util test man fabtests-config -- '*.cpp' '*.h' '*.c' '*.def' '*.sh' '*.md' \
        '*.[1-8]' 'Makefile.include'
    ls README.md CONTRIBUTING.md Makefile.am configure.ac
)
[ ${#files[@]} -gt 100 ] || { echo "only ${#files[@]} files were found"; exit 1; }
codespell -q 3 -L "$words" "${files[@]}" && echo "${#files[@]} files, nothing misspelt"
