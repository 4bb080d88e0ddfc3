# shellcheck shell=bash disable=SC2034,SC2086,SC2154
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Sourced by guest.sh for one test of a suite: the programs, and how they are driven.
# Addresses are in the environment: $siw, $rxe, $soft, $near, $far.
# The arguments of the shell that sources it are the test's name and what it runs.

current=$1
pipes=$(mktemp -d)
undo=: # what a test has set up beyond its processes
trap 'stop_both; $undo; rm -rf "$pipes"' EXIT
. "$DAT_SRCDIR/test/transport/processes.sh"

vm=$DAT_BUILDDIR/test/vm
# A suite that is about devices says so.
export FI_PROVIDER_PATH=$DAT_BUILDDIR/.libs FI_PROVIDER=dat FI_DAT_TRANSPORT=soft
export FI_LOG_LEVEL=warn # into the test's output

in_soft() { ip netns exec soft "$@"; }

# Waits until a program of that name listens on an RDMA device, for some seconds.
until_listening() {
    local i
    for i in $(seq 100); do
        ! rdma resource show cm_id | grep -q "state LISTEN .*comm $1" || return 0
        sleep 0.1
    done
    die "$1 does not listen"
}

# Runs a command in the second guest, and prints what it says.
on_far() { bash "$DAT_SRCDIR/test/vm/far.sh" "$@" </dev/null | tail -n +2; }

until_far_is_there() {
    local i
    for i in $(seq 600); do
        [ "$(on_far echo there 2>/dev/null)" != there ] || return 0
        sleep 0.1
    done
    die 'the second guest does not answer'
}

# Starts a program in the second guest as `start` does here. Ends with its input.
start_far() { # name command...
    local name=$1
    shift
    start "$name" bash "$DAT_SRCDIR/test/vm/far.sh" "$@"
    listen_for "$name"
    far_pid=$answer
}

exact=yes # private data arrives with the length that it was sent with

# The event that shows so much private data.
shows() { # word bytes
    if [ $exact = yes ]; then echo "$1 $2"; else echo "$1 *"; fi
}

# Connects two started peers, FROM with so many bytes of private data, TO with others.
join() { # from from-bytes to to-bytes address-of-to
    expect "$3" 'ok *' listen
    port=${answer#ok }
    join_again "$1" "$2" "$3" "$4" "$5"
}

# The same once more: TO listens still.
join_again() {
    expect "$1" ok connect "$5" "$port" "$2"
    expect "$3" "$(shows connreq "$2")" event
    expect "$3" ok accept "$4"
    expect "$1" "$(shows connected "$4")" event
    expect "$3" 'connected *' event
}
