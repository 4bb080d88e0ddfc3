# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Completes the options of the commands of dat, and files where they take some. The options are taken from what
# --help of the command prints, so that they are those of the command that would run.

# Prints the words of the lines of `--help` that begin with $1: the options, or the subcommands.
_dat_words() { # options|commands command...
    local want=$1
    shift
    "$@" --help 2>/dev/null | awk -v want="$want" '
        /^[A-Za-z]+:$/ {part = $0}
        want == "options" && part == "Options:" && /^ +-/ {
            sub(/^ +/, "")
            count = split($1, names, ",")
            for (i = 1; i <= count; i++) print names[i]
        }
        want == "commands" && part == "Subcommands:" && /^  [a-z]/ {print $1}'
}

# Prints the words that option $1 may have, as {a,b,c} stands behind it in `--help`.
_dat_values() { # option command...
    local option=$1
    shift
    "$@" --help 2>/dev/null | awk -v option="$option" '
        /^ +-/ {
            count = split($1, names, ",")
            for (i = 1; i <= count; i++) if (names[i] == option && match($0, /\{[a-z0-9,-]+\}/)) {
                words = substr($0, RSTART + 1, RLENGTH - 2)
                gsub(",", "\n", words)
                print words
            }
        }'
}

_dat_command() {
    local command=$1 word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local called=("$command") commands words
    commands=$(_dat_words commands "$command")
    if [ "$COMP_CWORD" -gt 1 ] && grep -qx -e "${COMP_WORDS[1]}" <<<"$commands"; then
        called+=("${COMP_WORDS[1]}")
    fi
    case ${command##*/}:$before in
    *:--check) words=$("$command" --list 2>/dev/null | awk '{print $1}') ;;
    # Where they have a file behind them; elsewhere they are words alone.
    dat_perf:--baseline | dat_perf:--csv | dat_perf:--html | dat_perf:--json | dat_top:--prometheus | \
        dat_trace:--output | dat_trace:-o)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    *:--svg)
        mapfile -t COMPREPLY < <(compgen -d -- "$word")
        return
        ;;
    *:--peer | *:--to)
        mapfile -t COMPREPLY < <(compgen -A hostname -- "$word")
        return
        ;;
    *:-*) words=$(_dat_values "$before" "${called[@]}") ;;
    *) words= ;;
    esac
    if [ -z "$words" ] && [ "${command##*/}" = dat_trace ] && [[ $word != -* ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
    fi
    if [ -z "$words" ]; then
        words=$(_dat_words options "${called[@]}")
        [ ${#called[@]} -gt 1 ] || words+=" $commands"
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -F _dat_command dat_doctor dat_info dat_perf dat_states dat_top dat_trace
