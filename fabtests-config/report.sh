# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# To be sourced by run.sh: what became of each test, compared with what is expected, on
# standard output and as JUnit XML. Uses $scratch.

declare -A expected=() # the tests of this link that are to pass; combinations, or 1
total_passed=0
total_failed=0
total_notrun=0
total_excluded=0

xml_text() { sed 's/[^[:print:]\t]//g; s/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g; s/"/\&quot;/g'; }

begin_report() { # link file
    local line least
    link_name=$1
    passed=0 failed=0 notrun=0 excluded=0
    expected=()
    : >"$scratch/cases"
    echo "== link $1"
    [ -r "$2" ] || { echo "nothing is expected: $2 is not there"; return 0; }
    while IFS=$'\t' read -r line least; do
        case $line in '' | '#'*) continue ;; esac
        expected[$line]=${least:-1}
        if ! grep -qF " $line" "$here/stock.tests" "$here/more.tests"; then
            failed=$((failed + 1))
            echo "fail         0 s  $line"
            echo '    expected to pass, and in neither table of tests'
        fi
    done <"$2"
}

# `detail` is a reason, or how many combinations succeeded.
report() { # line result seconds detail
    local line=$1 result=$2 seconds=$3 detail=$4 why='' least=${expected[$1]:-}
    case $result in
    pass)
        if [ -n "$least" ] && [ -n "$detail" ] && [ "$detail" -lt "$least" ]; then
            result=fail
            why="$detail combinations succeeded, $least are expected"
        fi
        ;;
    fail) why="it failed${detail:+, $detail combinations succeeded}" ;;
    *) [ -z "$least" ] || { why="expected to pass, and was: $result${detail:+ ($detail)}" result=fail; } ;;
    esac
    case $result in
    pass) passed=$((passed + 1)) ;;
    fail) failed=$((failed + 1)) ;;
    excluded) excluded=$((excluded + 1)) ;;
    *) notrun=$((notrun + 1)) ;;
    esac
    printf '%-9s %4d s  %s%s\n' "$result" "$seconds" "$line" "${detail:+  [$detail]}"
    [ $result != pass ] || [ -n "$least" ] || echo "          (not in the list of expected passes)"
    if [ $result = fail ]; then
        echo "    $why"
        sed 's/^/    server: /' "$scratch/server" | tail -n 15
        sed 's/^/    client: /' "$scratch/client" | tail -n 15
    fi
    {
        printf '    <testcase classname="%s" name="%s" time="%d">' "fabtests.$link_name" \
            "$(xml_text <<<"$line")" "$seconds"
        case $result in
        fail)
            printf '<failure message="%s">' "$(xml_text <<<"$why")"
            tail -n 40 "$scratch/server" "$scratch/client" | xml_text
            printf '</failure>'
            ;;
        pass) ;;
        *) printf '<skipped message="%s"/>' "$(xml_text <<<"${detail:-$result}")" ;;
        esac
        printf '</testcase>\n'
    } >>"$scratch/cases"
}

end_report() {
    echo "-- link $link_name: $passed passed, $failed failed, $notrun not run, $excluded excluded"
    {
        printf '  <testsuite name="fabtests.%s" tests="%d" failures="%d" skipped="%d">\n' \
            "$link_name" $((passed + failed + notrun + excluded)) "$failed" $((notrun + excluded))
        cat "$scratch/cases"
        printf '  </testsuite>\n'
    } >>"$scratch/suites"
    total_passed=$((total_passed + passed))
    total_failed=$((total_failed + failed))
    total_notrun=$((total_notrun + notrun))
    total_excluded=$((total_excluded + excluded))
}

write_xml() { # file
    {
        echo '<?xml version="1.0" encoding="UTF-8"?>'
        echo '<testsuites>'
        cat "$scratch/suites"
        echo '</testsuites>'
    } >"$1"
}

summary() {
    echo "fabtests: $total_passed passed, $total_failed failed, $total_notrun not run, $total_excluded excluded"
    [ "$total_failed" -eq 0 ] && [ "$total_passed" -gt 0 ]
}
