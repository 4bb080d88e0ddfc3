# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# To be sourced by the scripts of this project: what more than one of them does.

# Copies the source tree $1 to the new directory $2, without what git ignores,
# so that a build neither finds nor leaves anything in the tree.
copy_source() {
    mkdir "$2" && tar -C "$1" --exclude=./.git --exclude-vcs-ignores -cf - . | tar -C "$2" -xf -
}

# Prints the mirror that this Debian's apt takes its release from.
debian_mirror() {
    local mirror
    mirror=$(sed -n 's/^URIs: *//p; s/^deb \(\[.*\] \)\?\(http[^ ]*\) bookworm main.*/\2/p' /etc/apt/sources.list \
        /etc/apt/sources.list.d/debian.sources 2>/dev/null | head -n 1)
    echo "${mirror:-http://deb.debian.org/debian}"
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

# Programs of others listen on ports that they choose themselves, those of dapl2-utils from 45248 on
# and from 62000: in a network of a test's own the kernel is to give none of them to a connection.
# The command runs another one in that network; none: it is the one here.
keep_ports() { # [command...]
    "$@" sh -c 'echo 50000 60000 >/proc/sys/net/ipv4/ip_local_port_range' 2>/dev/null || true
}

# Makes two network namespaces with a virtual wire between them, a device named wire in each:
# 192.0.2.1 and 2001:db8::1 in the first, 192.0.2.2 and 2001:db8::2 in the second. Fails, and
# prints the reason, where that cannot be; what was made is there all the same. Who calls
# removes them: ip netns del NAME.
make_namespaces() { # first second
    local name number
    ip netns add "$1" 2>/dev/null && ip netns add "$2" || {
        echo 'this user cannot make network namespaces'
        return 1
    }
    ip -n "$1" link add wire type veth peer name wire netns "$2" 2>/dev/null || {
        echo 'this kernel has no veth devices'
        return 1
    }
    number=1
    for name in "$1" "$2"; do
        keep_ports ip netns exec "$name"
        # nodad: an IPv6 address is there at once.
        ip -n "$name" addr add "192.0.2.$number/24" dev wire &&
            ip -n "$name" addr add "2001:db8::$number/64" dev wire nodad &&
            ip -n "$name" link set lo up && ip -n "$name" link set wire up || {
            echo 'the namespaces cannot be given addresses'
            return 1
        }
        number=2
    done
    # A link-local address too is there at once, so that the wire is ready.
    ip -n "$1" -6 route show dev wire >/dev/null
}

# For sh -c, in a mount namespace of its own: a file in the place of the kernel's setting of Yama says
# that processes may not read each other's memory.
# shellcheck disable=SC2034
yama_forbids='mount -t tmpfs none /proc/sys/kernel && mkdir /proc/sys/kernel/yama &&
    echo 1 >/proc/sys/kernel/yama/ptrace_scope'
