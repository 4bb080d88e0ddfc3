#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Every file that people write names its licence within its first three lines.
# Test data (test/spec, *.tsv) has no place for it.
set -u
. "$(dirname "${BASH_SOURCE[0]}")/sources.sh"

licence='SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only'
mapfile -t files < <(
    sources prov include util test man .ci -- '*.cpp' '*.h' '*.c' '*.def' '*.map' '*.sh' \
        'Makefile.include' '*.[1-8]' run
    ls LICENSE Makefile.am configure.ac libdat-fi.pc.in libdat.pc.in libdat2.pc.in .clang-format .clang-tidy .editorconfig .shellcheckrc
)
[ ${#files[@]} -gt 10 ] || { echo "only ${#files[@]} files were found"; exit 1; }
# One process for all files: one for each takes longer than all that is read.
bad=$(awk -v licence="$licence" '
    FNR <= 3 && index($0, licence) {has[FILENAME] = 1}
    FNR == 3 {nextfile}
    END {
        for (i = 1; i < ARGC; i++)
            if (!(ARGV[i] in has)) print ARGV[i] ": the first three lines lack \"" licence "\""
    }' "${files[@]}") || exit 1
[ -z "$bad" ] || { echo "$bad"; exit 1; }
echo "${#files[@]} files, each with its licence"
