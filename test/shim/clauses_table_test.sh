#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Prints what becomes of each clause of the DAT semantics in each version of the API: proved
# by which tests, nothing to prove, or deviated from. Fails where no test cites a clause that is to be
# proved, and where one cites a clause that does not exist, or that is said to have nothing to prove.
set -u

cd "${DAT_SRCDIR:-$(dirname "${BASH_SOURCE[0]}")/../..}" || exit 1
table=test/shim/clauses.tsv
exceptions=test/shim/clauses12.tsv # what 1.2 has otherwise

# Prints the files of the given places whose comments cite the clause, without folders.
cited_in() { # clause place...
    local clause=$1
    shift
    grep -rlE --include='*.cpp' --exclude="clauses_udat$other*.cpp" "//.*\\b$clause\\b" "$@" | sed 's,.*/,,' | sort | tr '\n' ' '
}

failed=0
# The table of one version; `other` is the one that it is not.
look() { # 20|12
    local clause wanted reason here verdict exception other=12
    [ "$1" = 20 ] || other=20
    declare -A count=([proved]=0 [elsewhere]=0 [none]=0 [deviates]=0 [open]=0)
    while IFS=$'\t' read -r clause wanted reason; do
        case $clause in '#'*) continue ;; esac
        exception=$(grep "^$clause	" $exceptions)
        [ "$1" = 20 ] || [ -z "$exception" ] || IFS=$'\t' read -r _ wanted reason <<<"$exception"
        here=$(cited_in "$clause" test/shim)
        case $wanted in
        none)
            verdict=none
            if [ -n "$here" ]; then
                echo "FAIL: $clause is said to have nothing to prove, and is cited in $here"
                failed=1
            fi
            ;;
        deviate)
            verdict=deviates
            reason="$reason${here:+ ($here)}"
            ;;
        *)
            verdict=proved reason=$here
            if [ -z "$here" ]; then
                reason=$(cited_in "$clause" test/transport test/unit test/sim)
                verdict=${reason:+elsewhere}
                if [ -z "$verdict" ]; then
                    verdict=open
                    echo "FAIL: no test cites $clause"
                    failed=1
                fi
            fi
            ;;
        esac
        count[$verdict]=$((count[$verdict] + 1))
        printf '%-8s %-9s %s\n' "$clause" "$verdict" "$reason"
    done <"$table"
    echo "$1: ${count[proved]} proved here, ${count[elsewhere]} by tests of the provider," \
        "${count[none]} with nothing to prove, ${count[deviates]} deviated from, ${count[open]} open"
}
look 20
look 12

while read -r clause; do
    grep -q "^$clause	" $table || { echo "FAIL: there is no clause $clause"; failed=1; }
done < <(grep -rhE '^//' test/shim/clauses_*.cpp | grep -oE '\b[A-Z]+2?-[0-9]+\b' |
    grep -vE '^(U|BSD|GPL)-' | sort -u)

exit $failed
