# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# To be sourced by the tests of dat_trace: where things are, and a connection between two
# processes that is recorded. The script has sourced test/transport/processes.sh.

build=${DAT_BUILDDIR:-.}
here=$root/test/trace
export FI_PROVIDER=dat FI_DAT_TRANSPORT=soft
unset FI_DAT_TRACE FI_DAT_TRACE_FRAMES FI_DAT_TRACE_SIZE
export FI_PROVIDER_PATH=${FI_PROVIDER_PATH:-$build/.libs}

fail() {
    echo "FAIL: $*"
    exit 1
}

# Processes a and b write $1.a and $1.b; more of the environment behind it. Of b, which listens,
# a asks for a connection.
connected() { # name variable=value...
    local name=$1
    shift
    start a env "FI_DAT_TRACE=$folder/$name.a" "$@" "$build/test/transport/peer" 127.0.0.1
    start b env "FI_DAT_TRACE=$folder/$name.b" "$@" "$build/test/transport/peer" 127.0.0.1
    expect b 'ok *' listen
    expect a ok connect 127.0.0.1 "${answer#ok }" 0
    expect b 'connreq 0' event
    expect b ok accept 0
    expect a 'connected 0' event
    expect b 'connected 0' event
}

# a sends $1 messages of 64 bytes, and b one.
exchange() { # count
    expect b ok recv "$1" 64
    expect a ok recv 1 64
    expect a ok send "$1" 64
    expect b ok send 1 64
    expect a "results $(($1 + 1)) 0 0" finish
    expect b "results $(($1 + 1)) 0 0" finish
}

# a ends the connection gracefully.
part() {
    expect a ok disconnect graceful
    expect a 'shutdown *' event
    expect b 'shutdown *' event
    tell a quit
    tell b quit
    wait "${pid[a]}" "${pid[b]}"
}

# A message that is longer than its receive breaks the connection of both.
broken() {
    expect b ok recv 1 10
    expect a ok send 1 100
    expect b 'shutdown *' event
    expect a 'shutdown *' event
    tell a quit
    tell b quit
    wait "${pid[a]}" "${pid[b]}"
}
