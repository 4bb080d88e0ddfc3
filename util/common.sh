# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# To be sourced by the scripts of this project: what more than one of them does.

# Copies the source tree $1 to the new directory $2, without what git ignores,
# so that a build neither finds nor leaves anything in the tree.
copy_source() {
    mkdir "$2" && tar -C "$1" --exclude=./.git --exclude-vcs-ignores -cf - . | tar -C "$2" -xf -
}

# Ends every process of the session that process $1 leads (see setsid(1)):
# asks, waits for up to 5 s, then kills.
end_session() {
    local pids i
    for i in $(seq 50); do
        pids=$(session_members "$1")
        [ -n "$pids" ] || return 0
        # Unquoted on purpose: one argument a process.
        if [ "$i" -eq 1 ]; then kill -TERM $pids 2>/dev/null; fi
        sleep 0.1
    done
    kill -KILL $pids 2>/dev/null
}

# Prints the processes of session $1.
session_members() {
    local stat line
    for stat in /proc/[0-9]*/stat; do
        { read -r line <"$stat"; } 2>/dev/null || continue
        # Behind the name in parentheses: state, parent, group, session.
        set -- "$1" ${line##*) }
        if [ "$5" = "$1" ] && [ "$2" != Z ]; then
            echo "${line%% *}"
        fi
    done
}
