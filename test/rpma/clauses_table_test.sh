#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Prints what becomes of each rule of librpma's behaviour: proved by which files, or deviated
# from. Fails where no test cites a rule that is to be proved, and where one cites a rule that
# does not exist. A test cites rules in the comment right above it.
set -u

cd "${DAT_SRCDIR:-$(dirname "${BASH_SOURCE[0]}")/../..}" || exit 1
table=test/rpma/clauses.tsv

failed=0
proved=0
deviates=0
while IFS=$'\t' read -r rule wanted what; do
    case $rule in '' | '#'*) continue ;; esac
    # Of how many tests, in which files.
    cited=$(awk -v rule="$rule" '
        /^\/\// {text = text " " $0; next}
        /^RPMA_TEST\(/ {if ((text " ") ~ rule "[^0-9]") {print FILENAME}; text = ""; next}
        {text = ""}' test/rpma/clauses_*.cpp | sed 's,.*/,,' | sort | uniq -c |
        awk '{printf "%s%s (%d)", (NR > 1) ? ", " : "", $2, $1}')
    case $wanted in
    prove)
        if [ -z "$cited" ]; then
            echo "FAIL: no test cites $rule: $what"
            failed=1
        else
            proved=$((proved + 1))
        fi
        ;;
    deviate) deviates=$((deviates + 1)) ;;
    rxe | siw | devices)
        grep -q "\"$rule: " test/rpma/applicable.cpp ||
            { echo "FAIL: $rule is different over $wanted, and no test is left out for it"; failed=1; }
        ;;
    *)
        echo "FAIL: $table: $rule is '$wanted', none of prove, deviate and a device"
        failed=1
        ;;
    esac
    printf '%-6s %-8s %s: %s\n' "$rule" "$wanted" "$what" "${cited:-no test}"
done <"$table"
echo "rpma: $proved proved, $deviates deviated from"
[ $((proved + deviates)) -eq 22 ] || { echo 'FAIL: there are 22 rules'; failed=1; }

while read -r rule; do
    grep -q "^$rule	" $table || { echo "FAIL: there is no rule $rule"; failed=1; }
done < <(grep -hE '^//' test/rpma/clauses_*.cpp | grep -oE '\bRP-[0-9]+\b' | sort -u)
while read -r rule; do
    grep -qE "^$rule	(rxe|siw|devices)	" $table ||
        { echo "FAIL: tests of $rule are left out over a device, and $table does not say so"; failed=1; }
done < <(sed '/kOfGenuine/,$d' test/rpma/applicable.cpp | grep -oE '"RP-[0-9]+: ' |
    grep -oE 'RP-[0-9]+' | sort -u)
exit $failed
