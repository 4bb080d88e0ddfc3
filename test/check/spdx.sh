#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Every file that people write names its licence within its first three lines.
# Test data (test/spec, *.tsv) has no place for it.
set -u
. "$(dirname "${BASH_SOURCE[0]}")/sources.sh"

licence='SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only'
bad=0
count=0
while read -r file; do
    count=$((count + 1))
    head -n 3 "$file" | grep -qF "$licence" || {
        echo "$file: the first three lines lack \"$licence\""
        bad=$((bad + 1))
    }
done < <(
    sources prov include util test man .ci -- '*.cpp' '*.h' '*.c' '*.def' '*.map' '*.sh' \
        'Makefile.include' '*.[1-8]' run
    ls LICENSE Makefile.am configure.ac libdat-fi.pc.in libdat.pc.in libdat2.pc.in .clang-format .clang-tidy .editorconfig .shellcheckrc
)
[ "$count" -gt 10 ] || { echo "only $count files were found"; exit 1; }
echo "$count files, $bad without a licence"
[ "$bad" -eq 0 ]
