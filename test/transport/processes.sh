# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# To be sourced by scripts that drive processes, named a and b, through lines that they
# read and answer: see peer.cpp. The script sets, before it uses them:
#   $pipes    a folder of its own
#   $current  the test that runs, for messages

limit=${limit:-30} # seconds that one answer may take
declare -A to from pid

start() { # name command...
    local name=$1
    shift
    rm -f "$pipes/$name.to" "$pipes/$name.from"
    mkfifo "$pipes/$name.to" "$pipes/$name.from"
    (exec "$@" <"$pipes/$name.to" >"$pipes/$name.from") &
    pid[$name]=$!
    exec {new_to}>"$pipes/$name.to" {new_from}<"$pipes/$name.from"
    to[$name]=$new_to
    from[$name]=$new_from
}

stop() { # name
    [ -n "${pid[$1]:-}" ] || return 0
    kill -KILL "${pid[$1]}" 2>/dev/null
    wait "${pid[$1]}" 2>/dev/null
    local old_to=${to[$1]} old_from=${from[$1]}
    exec {old_to}>&- {old_from}<&-
    unset "pid[$1]"
}

die() {
    echo "FAIL: $current: $*"
    exit 1
}

tell() { # name command...
    local name=$1
    shift
    echo "$*" >&"${to[$name]}" || die "$name is gone, told: $*"
}

answer=
listen_for() { # name
    read -r -t "$limit" -u "${from[$1]}" answer || die "no answer from $1"
}

expect() { # name answer command...: a pattern of the shell
    local name=$1 expected=$2
    shift 2
    tell "$name" "$@"
    listen_for "$name"
    # shellcheck disable=SC2053
    [[ $answer == $expected ]] || die "$name answered '$*' with '$answer', not '$expected'"
}

stop_both() {
    stop a
    stop b
}
