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

# Prints "clause file" for each clause that a comment in the given places cites.
citations() { # the-other-version place...
    local other=$1
    shift
    grep -roE --include='*.cpp' --exclude="clauses_udat$other*.cpp" '//.*' "$@" |
        awk -F: '{
            file = $1
            sub(".*/", "", file)
            sub("^[^:]*:", "")
            while (match($0, /[A-Za-z0-9_]+-[0-9]+/)) {
                print substr($0, RSTART, RLENGTH), file
                $0 = substr($0, RSTART + RLENGTH)
            }
        }' | LC_ALL=C sort -u
}

# Reads citations into the array of that name: the files of each clause, each with a space behind it.
index() { # array
    local -n files=$1
    local clause file
    while read -r clause file; do files[$clause]+="$file "; done
}

failed=0
declare -A exception_of=()
while IFS=$'\t' read -r clause rest; do exception_of[$clause]=$rest; done <"$exceptions"
# The table of one version; `other` is the one that it is not.
look() { # 20|12
    local clause wanted reason here verdict exception other=12
    [ "$1" = 20 ] || other=20
    declare -A in_shim=() in_others=()
    index in_shim < <(citations $other test/shim)
    index in_others < <(citations $other test/transport test/unit test/sim)
    declare -A count=([proved]=0 [elsewhere]=0 [none]=0 [deviates]=0 [open]=0)
    while IFS=$'\t' read -r clause wanted reason; do
        case $clause in '#'*) continue ;; esac
        exception=${exception_of[$clause]:-}
        [ "$1" = 20 ] || [ -z "$exception" ] || IFS=$'\t' read -r wanted reason <<<"$exception"
        here=${in_shim[$clause]:-}
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
                reason=${in_others[$clause]:-}
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

declare -A known=()
while IFS=$'\t' read -r clause _; do known[$clause]=yes; done <"$table"
while read -r clause; do
    [ -n "${known[$clause]:-}" ] || { echo "FAIL: there is no clause $clause"; failed=1; }
done < <(grep -rhE '^//' test/shim/clauses_*.cpp | grep -oE '\b[A-Z]+2?-[0-9]+\b' |
    grep -vE '^(U|BSD|GPL)-' | sort -u)

exit $failed
