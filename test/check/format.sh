#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The C++ and C sources look as .clang-format says. Only clang-format 14 counts:
# other versions format the same configuration differently.
# To mend a file: clang-format-14 -i FILE
set -u
. "$(dirname "${BASH_SOURCE[0]}")/sources.sh"

formatter=$(command -v clang-format-14 || command -v clang-format) ||
    skip 'clang-format 14 is not installed (Debian: clang-format-14)'
case $("$formatter" --version) in
*'version 14.'*) ;;
*) skip "$formatter is not version 14" ;;
esac

# A released header is kept as it was, in test/spec.
mapfile -t files < <(sources prov test util -- '*.cpp' '*.h' '*.c' | grep -v '^test/spec/')
[ ${#files[@]} -gt 0 ] || { echo 'no sources found'; exit 1; }
if said=$("$formatter" --style=file --dry-run --Werror "${files[@]}" 2>&1); then
    echo "${#files[@]} files are formatted as .clang-format says"
else
    echo 'Not formatted as .clang-format says; to mend: clang-format-14 -i FILE'
    echo "$said" | sed -nE 's/^([^: ]+):[0-9]+:[0-9]+: .*/\1/p' | sort | uniq -c
    exit 1
fi
