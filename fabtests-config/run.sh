#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Runs libfabric's test programs (fabtests) over `dat`, and compares with the committed list of what
# passes. What needs FI_EP_RDM runs over `dat;ofi_rxm`, and over dat's own FI_EP_RDM. README.md says
# more.
#
#   run.sh FABTESTS_BIN_DIR [SUITE]
#
# SUITE is quick (the default: unit, functional and short), standard, multinode, regression,
# threaded, uber-shipped (2.x), uber-rdm (2.x, over rdm-*), more, uber-quick, uber-all, check (quick,
# multinode, more, uber-quick), or all.
#
# DAT_BUILDDIR          a build folder, whose provider is used; without it FI_PROVIDER_PATH is
# DAT_FABTESTS_LINKS    "shm tcp rdm-shm rdm-tcp" (default), or some of them: what carries the data,
#                       and over rdm-* the tests of FI_EP_RDM alone, with dat's own; rxe, siw,
#                       rdm-rxe, rdm-siw: the RDMA device of the interface in FI_DAT_IFACE, at
#                       DAT_FABTESTS_ADDRESS
# DAT_FABTESTS_PROVIDER another provider than dat, to count what passes there: nothing is
#                       excluded, and no list says what is to pass
# DAT_FABTESTS_WINDOW   operations at once in a benchmark (64): each has a buffer of up to 8 MiB
# DAT_FABTESTS_ONLY     a regular expression: only tests whose line matches, and no comparison
#                       of the others
# DAT_FABTESTS_LIMIT_S  seconds that a program may take (300)
# DAT_FABTESTS_XML      where the JUnit XML goes (./fabtests.xml)
#
# In a network namespace of its own where this user may make one; else on 127.0.0.1, where
# port 9228 has to be free. Ends the processes that it started, and no others.
# Exit status: 0 if each expected test passed and none failed; 1 if not; 2 if it could not
# be tried.
set -u

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../util/common.sh"

usage() {
    sed -n 's/^# \{0,1\}//; 3,/^$/p' "${BASH_SOURCE[0]}" >&2
    exit 2
}

refuse() {
    echo "${0##*/}: $*" >&2
    exit 2
}

[ $# -ge 1 ] && [ $# -le 2 ] || usage
bin=$1
suite=${2:-quick}
only=${DAT_FABTESTS_ONLY:-}
limit=${DAT_FABTESTS_LIMIT_S:-300}
xml=${DAT_FABTESTS_XML:-$PWD/fabtests.xml}
links=${DAT_FABTESTS_LINKS:-shm tcp rdm-shm rdm-tcp}
port=9228 # the default of these programs
address=${DAT_FABTESTS_ADDRESS:-127.0.0.1}
window=${DAT_FABTESTS_WINDOW:-}
provider=${DAT_FABTESTS_PROVIDER:-dat}
[ "$provider" = dat ] || links=$provider

case $suite in
quick) suites='unit functional short' ;;
check) suites='unit functional short multinode more uber-quick' ;;
all) suites='unit functional short standard multinode regression threaded uber-shipped uber-rdm more uber-quick uber-all' ;;
unit | functional | short | standard | multinode | regression | threaded | uber-shipped | uber-rdm | more | uber-quick | uber-all)
    suites=$suite
    ;;
*)
    refuse "no suite is called '$suite': quick, standard, multinode, regression, threaded," \
        "uber-shipped, more, uber-quick, uber-all, check, all"
    ;;
esac
[ -x "$bin/fi_msg_pingpong" ] || refuse "$bin holds no fi_msg_pingpong: is it fabtests' bin folder?"
for link in $links; do
    [ "$provider" = dat ] || break
    case $link in
    shm | tcp | rdm-shm | rdm-tcp) ;;
    rxe | siw | rdm-rxe | rdm-siw)
        [ -n "${FI_DAT_IFACE:-}" ] || refuse "over $link FI_DAT_IFACE has to name an interface"
        ;;
    *) refuse "DAT_FABTESTS_LINKS: '$link' is none of shm, tcp, rdm-shm, rdm-tcp, rxe, siw, rdm-rxe, rdm-siw" ;;
    esac
done
# fi_flood is what 1.x calls fi_bw.
major=1
[ ! -x "$bin/fi_flood" ] || major=2

if [ -n "${DAT_BUILDDIR:-}" ]; then
    FI_PROVIDER_PATH=$(cd "$DAT_BUILDDIR" && pwd)/.libs
    export FI_PROVIDER_PATH
fi

# --- a network of its own -----------------------------------------------------

# RDMA devices are in the first namespace only.
devices=no
[[ $links != *rxe* && $links != *siw* ]] || devices=yes
if [ $devices = no ] && [ -z "${DAT_FABTESTS_INSIDE:-}" ] && unshare -n true 2>/dev/null; then
    DAT_FABTESTS_INSIDE=1 exec unshare -n bash "${BASH_SOURCE[0]}" "$@"
fi
if [ -n "${DAT_FABTESTS_INSIDE:-}" ]; then
    ip link set lo up || refuse 'the loopback interface of the network namespace cannot be used'
fi

# Does anybody listen? In a network namespace of its own that can only be what was started
# here, and any port counts; some programs use another one than the usual.
listened() {
    local pattern=.
    [ $devices = no ] || ! rdma resource show cm_id | grep -q 'state LISTEN ' || return 0
    [ -n "${DAT_FABTESTS_INSIDE:-}" ] || [ $devices = yes ] || pattern=$(printf ':%04X$' $port)
    cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
        awk -v pattern="$pattern" '$4 == "0A" && $2 ~ pattern {found = 1} END {exit !found}'
}
! listened || refuse "somebody listens on port $port, which these programs use"

scratch=$(mktemp -d "${TMPDIR:-/tmp}/dat-fabtests.XXXXXX") || exit 2
started=()
clean_up() {
    local pid
    trap '' HUP INT TERM
    for pid in "${started[@]}"; do end_session "$pid"; done
    rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

. "$here/report.sh"

# --- one test -----------------------------------------------------------------

# Starts a program in a session of its own, bounded in time: the last of `started`.
start() { # output program words...
    local output=$1
    shift
    setsid -w timeout -k 5 "$limit" "$bin/$1" "${@:2}" >"$output" 2>&1 </dev/null &
    started+=($!)
}

# Until the server listens or has ended; a few seconds for one that never listens.
await_server() { # process
    local i
    for i in $(seq 500); do
        ! listened || return
        kill -0 "$1" 2>/dev/null || return
        sleep 0.02
    done
}

# Waits for process $1, for up to $2 seconds, then ends its session. Sets `status`.
collect() {
    local i
    status=0
    for i in $(seq $(($2 * 20))); do
        kill -0 "$1" 2>/dev/null || break
        sleep 0.05
    done
    end_session "$1"
    wait "$1" || status=$?
}

# Sets `result` from the exit statuses of all processes of a test: these programs end with
# ENODATA or ENOSYS, all of them, where the provider does not have what they test.
judge() { # status...
    local each
    result=pass
    for each; do [ "$each" -eq 0 ] || result=fail; done
    [ $result = fail ] || return
    for each; do [ "$each" -eq "$1" ] || return; done
    if [ "$1" -eq 61 ] || [ "$1" -eq 38 ]; then result=notrun; fi
}

run_alone() { # words...
    start "$scratch/client" "$@" -p "$provider"
    wait "${started[-1]}"
    judge $?
}

run_negative() {
    start "$scratch/client" "$@" -p "$provider"
    local status=0
    wait "${started[-1]}" || status=$?
    result=fail
    [ $status -ne 61 ] || result=pass
}

run_pair() {
    local server client s c
    start "$scratch/server" "$@" -p "$provider" -s $address
    server=${started[-1]}
    await_server "$server"
    start "$scratch/client" "$@" -p "$provider" -s $address $address
    client=${started[-1]}
    collect "$client" $((limit + 6))
    c=$status
    # A failed client may leave a server that waits for ever.
    if [ "$c" -eq 0 ]; then collect "$server" $((limit + 6)); else collect "$server" 3; fi
    s=$status
    judge "$s" "$c"
}

# A server that goes on until it is ended, and clients that may end in the midst of something.
run_served() {
    local server c
    start "$scratch/server" "$@" -p "$provider" -s $address
    server=${started[-1]}
    await_server "$server"
    start "$scratch/client" "$@" -p "$provider" $address
    collect "${started[-1]}" $((limit + 6))
    c=$status
    kill -0 "$server" 2>/dev/null || c=1
    judge "$c"
}

# Three processes, of which the first is the one that the others ask.
run_nodes() {
    local i processes=() statuses=()
    for i in 1 2 3; do
        start "$scratch/$([ $i = 1 ] && echo server || echo client$i)" "$@" -p "$provider" -n 3 -s $address
        processes+=("${started[-1]}")
        [ $i -ne 1 ] || await_server "${started[-1]}"
    done
    for i in "${processes[@]}"; do
        collect "$i" $((limit + 6))
        statuses+=("$status")
    done
    cat "$scratch"/client[23] >"$scratch/client"
    judge "${statuses[@]}"
}

# Those that name a type of endpoint which the provider does not have find nothing, and count
# as neither.
run_shipped() { # program file
    run_configuration "$1" "$bin/../share/fabtests/test_configs/$2"
}

run_uber() { # program file
    run_configuration "$1" "$here/$2"
}

# Prints what a configuration has for FI_EP_RDM, whatever lies between that and the provider.
of_rdm() { # path
    awk '/^{/ {block = ""} {block = block $0 "\n"}
         /^}/ {if (block ~ /FI_EP_RDM/) printf "%s", block; block = ""}' "$1" |
        sed -e 's/\(prov_name: [a-z]*\);ofi_rxm/\1/' -e 's/FI_EP_MSG,* *//'
}

# All combinations of a configuration, whichever provider that is for; `detail` says how many
# succeeded.
run_configuration() { # program path
    local server client good
    if [[ $link == rdm-* ]]; then of_rdm "$2"; else cat "$2"; fi |
        sed "s/prov_name: [^,;]*/prov_name: $provider/" >"$scratch/uber.test"
    if [ ! -s "$scratch/uber.test" ]; then
        result=notrun detail='nothing in it is for FI_EP_RDM'
        return
    fi
    start "$scratch/server" "$1" -x
    server=${started[-1]}
    await_server "$server"
    start "$scratch/client" "$1" -u "$scratch/uber.test" $address
    client=${started[-1]}
    collect "$client" $((limit + 6))
    local s c=$status
    if [ "$c" -eq 0 ]; then collect "$server" 30; else collect "$server" 3; fi
    s=$status
    result=fail
    good=$(awk -F': *' '/^Success/ {n += $2} END {print n + 0}' "$scratch/client")
    detail=$good
    if [ "$s" -eq 0 ] && [ "$c" -eq 0 ] && [ "$good" -gt 0 ] &&
        awk -F': *' '/^(ENOSYS|ERROR)/ {bad += $2} END {exit bad + 0 > 0}' "$scratch/client"; then
        result=pass
    fi
}

# Is the test excluded? Then `reason` is the comment above what matches.
excluded() { # line
    local text
    reason=
    [ "$provider" = dat ] || return
    while read -r text; do
        case $text in
        '#'*) reason=${text#'#'} reason=${reason# } ;;
        '') reason= ;;
        *) [[ $1 =~ $text ]] && return 0 ;;
        esac
    done < <(cat "$here/dat.exclude" "$here/dat.exclude.$link" \
        "$here/dat.exclude.$([[ $link == rdm-* ]] && echo rdm || echo rxm)" 2>/dev/null)
    return 1
}

run_test() { # kind line
    local kind=$1 words before=$SECONDS
    read -r -a words <<<"${2//@address/$address}"
    words=("${words[@]//@here/$here}")
    [ -z "$window" ] || [[ ! $2 =~ ^fi_([a-z_]*pingpong|[a-z_]*bw) ]] || words+=(-W "$window")
    # Of 32,768 queues at once, each has memory of the device.
    [ $devices = no ] || [[ ! $2 =~ ^fi_cq_test ]] || words+=(-L 1024)
    # It begins by a socket: its key alone finds a receive for sure, and siw holds no message back.
    [ "$link" != siw ] || [[ ! $2 =~ ^fi_rma_bw ]] || words+=(-b)
    result='' detail=''
    started=()
    : >"$scratch/client"
    : >"$scratch/server"
    if excluded "$2"; then
        report "$2" excluded 0 "$reason"
        return
    fi
    if [ ! -x "$bin/${words[0]}" ]; then
        report "$2" missing 0 "$bin/${words[0]} is not there"
        return
    fi
    "run_$kind" "${words[@]}"
    report "$2" "$result" $((SECONDS - before)) "$detail"
    for kind in "${started[@]}"; do end_session "$kind"; done
    started=()
}

# --- all of them --------------------------------------------------------------

# The tables have a line for each test: suite, versions of fabtests, kind, then its words.
run_link() {
    local wanted versions kind line
    export FI_DAT_SHM=1 FI_DAT_TRANSPORT=soft
    [[ $1 == *shm ]] || FI_DAT_SHM=0
    [ $devices = no ] || FI_DAT_TRANSPORT=verbs
    # off_coll is libfabric's own layer for collectives: 2.6 crashes where it is hidden.
    export FI_PROVIDER=$provider,off_coll
    [ $major -eq 2 ] || FI_PROVIDER=$provider
    # ofi_rxm comes first where it is there.
    [[ $1 != rdm-* ]] || FI_PROVIDER=^ofi_rxm
    if [ "$provider" = dat ]; then
        begin_report "$1" "$here/expected/$major-$1"
    else
        begin_report "$1" /dev/null
    fi
    while read -r wanted versions kind line; do
        case $wanted in '' | '#'*) continue ;; esac
        [[ " $suites " == *" $wanted "* ]] && [[ $versions == *$major* ]] || continue
        [ "$wanted" != uber-rdm ] || [[ $1 == rdm-* ]] || continue
        [ -z "$only" ] || [[ $line =~ $only ]] || continue
        [[ $1 != rdm-* ]] || [[ ! $line =~ fi_msg_|-e\ (msg|dgram)|fi_cm_data|fi_dgram ]] || continue
        run_test "$kind" "$line"
    done < <(cat "$here/stock.tests" "$here/more.tests")
    end_report
}

echo "fabtests $major.x of $bin, suites: $suites"
for link in $links; do run_link "$link"; done
write_xml "$xml"
summary
