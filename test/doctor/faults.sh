#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# A fault for each check of dat_doctor: fault_CHECK(), or fault_CHECK__MORE(). Each makes the fault,
# sees its line, and no other WARN or FAIL, with the mend below; mends it as that says; and sees
# neither WARN nor FAIL. util/doctor/Makefile.include makes a list of these functions, without which
# a check does not compile. Runs one of them, as faults_test.sh begins it: in namespaces of its own.
#
# Usage: faults.sh FAULT FOLDER SOURCES BUILD
set -u

fault=$1 work=$2 root=$3 build=$4
. "$root/util/common.sh"
doctor=$build/dat_doctor
preload=$build/.libs/libdatfault.so
address=203.0.113.2 # of this host
there=203.0.113.1   # of the peer, where there is one
port=

fail() {
    echo "FAILED: $*"
    exit 1
}

# --- a host without faults -------------------------------------------------------

for name in "${!FI_@}" "${!DAT_@}" "${!OMPI_@}" LD_LIBRARY_PATH LD_PRELOAD; do unset "$name"; done
export FI_PROVIDER=dat FI_PROVIDER_PATH=$build/.libs
export HOME=$work DAT_OVERRIDE=/dev/null LC_ALL=C
ulimit -S -n 4096

hosts() { # lines
    printf '127.0.0.1 localhost\n::1 localhost\n' >"$work/hosts"
    printf '%s\n' "$@" >>"$work/hosts"
}
make_host() {
    set -e
    hosts "$address dathost"
    echo 'nameserver 127.0.0.1' >"$work/resolv.conf" # where nobody listens: no answer at once
    mount --bind "$work/hosts" /etc/hosts
    mount --bind "$work/resolv.conf" /etc/resolv.conf
    echo dathost >/proc/sys/kernel/hostname
    ip link set lo up
    ip link add eth9 type veth peer name far
    ip addr add $address/24 dev eth9
    ip addr add 2001:db8::2/64 dev eth9 nodad
    ip link set eth9 up
    ip link set far up
    ip route add default via $there dev eth9
    set +e
}

# An RDMA device, as far as the kernel would show it.
make_device() {
    set -e
    mount -t tmpfs none /sys
    device=/sys/class/infiniband/fake0/ports/1
    mkdir -p $device/gids $device/gid_attrs/ndevs /sys/class/infiniband_verbs/uverbs0
    echo '4: ACTIVE' >$device/state
    echo Ethernet >$device/link_layer
    echo fe80:0000:0000:0000:0000:00ff:fe00:0009 >$device/gids/0
    echo eth9 >$device/gid_attrs/ndevs/0
    mount -t tmpfs none /dev
    mknod -m 666 /dev/null c 1 3
    mknod -m 666 /dev/urandom c 1 9
    mkdir -m 1777 /dev/infiniband /dev/shm
    touch /dev/infiniband/rdma_cm /dev/infiniband/uverbs0
    export LD_PRELOAD=$preload DAT_LOCKED=unlimited # not everybody may raise it
    set +e
}

# --- looking ------------------------------------------------------------------------

with=()   # options
prefix=() # a command before dat_doctor
look() { # [option...]
    status=0
    "${prefix[@]}" "$doctor" "${with[@]}" "$@" >"$work/out" 2>"$work/err" || status=$?
    [ ! -s "$work/err" ] || [ -n "${noisy:-}" ] || fail "standard error: $(<"$work/err")"
    wrong=$(grep -E '^(WARN|FAIL) ' "$work/out")
}
# One line: of check $1, with status $2, and words (a pattern of grep -E) of finding and mend.
sees() { # check status finding mend
    look
    [[ $wrong =~ ^$2\ +$1\  && $(wc -l <<<"$wrong") -eq 1 ]] ||
        fail "not one line $2 $1, but: ${wrong:-none}
$(<"$work/out")"
    grep -qE -- "$3" <<<"$wrong" || fail "'$3' is not in: $wrong"
    mend=$(grep -A2 -E "^$2 +$1 " "$work/out" | sed -n 's/^ *mend:  //p')
    grep -qE -- "$4" <<<"$mend" || fail "'$4' is not in the mend: $mend of $wrong"
    case $2:$status in
    WARN:1 | FAIL:2) ;;
    *) fail "exit status $status with $2" ;;
    esac
}
gone() { # check
    look --check "$1"
    [ -z "$wrong" ] || fail "after the mend of $1: $wrong
$(<"$work/out")"
    grep -qE "^ok +$1 " "$work/out" || fail "after the mend, of $1: $(grep " $1 " "$work/out")"
    [ $status -eq 0 ] || fail "exit status $status and nothing is wrong"
}
# What the mend says from $1 on, and up to $2, as commands.
carry_out() { # [from [to]]
    local commands=$mend
    [ -z "${1:-}" ] || commands=${commands#*"$1"}
    [ -z "${2:-}" ] || commands=${commands%%"$2"*}
    eval "${commands#as root: }" >/dev/null || fail "the mend does not work: $commands"
}

# --- a peer -------------------------------------------------------------------------

# Another host, the far end of eth9; the commands of $1 are carried out there; then, by the command
# $2..., dat_doctor --serve runs there. Sets with, port.
serve_there() { # [commands [command...]]
    local commands=${1:-:} end=${far:-far}
    [ $# -eq 0 ] || shift
    mkfifo "$work/ready.$$" "$work/go.$$" "$work/said.$$"
    # shellcheck disable=SC2016
    unshare --net bash -c '
        echo >"$1/ready.$2"
        read -r _ <"$1/go.$2"
        ip link set lo up && ip link set "$6" name wire && ip addr add "$3/24" dev wire &&
            ip link set wire up && eval "$4" || exit 1
        exec "${@:8}" "$5" --serve --port "$7" >"$1/said.$2" 2>&1' \
        sh "$work" $$ $there "$commands" "$doctor" "$end" "${serve_port:-0}" "$@" &
    far_pid=$!
    read -r _ <"$work/ready.$$"
    ip link set "$end" netns $far_pid || fail 'no other host can be made'
    echo >"$work/go.$$"
    listening "$work/said.$$"
    rm "$work/ready.$$" "$work/go.$$" "$work/said.$$"
    with=(--peer "$there:$port")
}
listening() { # fifo
    local line
    read -r -t 20 line <"$1"
    port=${line##*listening on port }
    [[ $port =~ ^[0-9]+$ ]] || fail "dat_doctor --serve says: $line"
}
# The same on this host, by the command.
serve_here() { # [command...]
    mkfifo "$work/said"
    "$@" "$doctor" --serve --port 0 >"$work/said" 2>&1 &
    serving=$!
    listening "$work/said"
    rm "$work/said"
    with=(--peer "127.0.0.1:$port")
}
# Another one on the far host.
serve_beside() {
    mkfifo "$work/said"
    on_far "$doctor" --serve --port 0 >"$work/said" 2>&1 &
    listening "$work/said"
    rm "$work/said"
    with=(--peer "$there:$port")
}
on_far() { nsenter --net="/proc/$far_pid/ns/net" "$@"; }
# By a signal that unshare(1) does not keep from itself.
stop() { kill -KILL "$1" && wait "$1" 2>/dev/null; }

# --- libfabric and the provider -----------------------------------------------------

fault_libfabric() {
    export DAT_FAULT=libfabric LD_PRELOAD=$preload
    sees libfabric FAIL '1\.11 \(ABI FABRIC_1\.[0-9]+\), .*/libfabric\.so[^ ]* is too old' 'install libfabric 1\.17 or later'
    unset DAT_FAULT
    gone libfabric
}

fault_provider_file() {
    export FI_PROVIDER_PATH=/nowhere
    sees provider-file FAIL 'FI_PROVIDER_PATH names /nowhere, which is not there' \
        "^export FI_PROVIDER_PATH=$build/.libs\$"
    carry_out
    gone provider-file
}

fault_provider_file__in_another_folder() {
    mkdir "$work/empty"
    export FI_PROVIDER_PATH=$work/empty
    sees provider-file FAIL 'which has no libdat-fi.so in it' '^export FI_PROVIDER_PATH='
    carry_out
    gone provider-file
}

fault_provider_file__named_itself() {
    export FI_PROVIDER_PATH=$build/.libs/libdat-fi.so
    sees provider-file FAIL 'names the file .*/libdat-fi.so' "^export FI_PROVIDER_PATH=$build/.libs\$"
    carry_out
    gone provider-file
}

fault_provider_file__in_a_folder_that_cannot_be_read() {
    mkdir -m 000 "$work/closed"
    cp "$build/.libs/libdat-fi.so" "$work/closed"
    export FI_PROVIDER_PATH=$work/closed
    prefix=(setpriv "--bounding-set=-dac_override,-dac_read_search")
    sees provider-file FAIL 'closed, which this user cannot read' ": chmod a\+rx $work/closed\$"
    carry_out 'as its owner: '
    gone provider-file
}

fault_provider_loads() {
    mkdir "$work/lib"
    head -c 5000 "$build/.libs/libdat-fi.so" >"$work/lib/libdat-fi.so"
    export FI_PROVIDER_PATH=$work/lib
    sees provider-loads FAIL 'lib/libdat-fi.so cannot be loaded' 'install it again'
    cp "$build/.libs/libdat-fi.so" "$work/lib/libdat-fi.so"
    gone provider-loads
}

fault_provider_chosen() {
    export FI_PROVIDER=tcp,shm
    sees provider-chosen FAIL 'FI_PROVIDER=tcp,shm keeps programs from dat' '^unset FI_PROVIDER, or'
    carry_out 'or '
    gone provider-chosen
    export FI_PROVIDER=^dat
    sees provider-chosen FAIL 'FI_PROVIDER=\^dat keeps programs from dat' 'unset FI_PROVIDER'
    carry_out '' ,
    gone provider-chosen
}

fault_provider_offers() {
    export FI_DAT_IFACE=eth77
    sees provider-offers FAIL 'fi_getinfo\(\) answers -61' 'unset FI_DAT_IFACE, or name .*eth9'
    carry_out '' ,
    gone provider-offers
}

fault_provider_version() {
    export DAT_FAULT=version LD_PRELOAD=$preload
    sees provider-version WARN 'the provider is of version 7\.5, this command of [0-9.]+$' \
        'install both from one build'
    unset DAT_FAULT
    gone provider-version
}

# --- variables ----------------------------------------------------------------------

fault_variables_known() {
    export FI_DAT_SHM_PEER=any
    sees variables-known WARN 'FI_DAT_SHM_PEER is no variable' \
        '^unset FI_DAT_SHM_PEER, or, if that is meant, export FI_DAT_SHM_PEERS=any$'
    carry_out '' ,
    carry_out 'meant, '
    gone variables-known
    [ "$FI_DAT_SHM_PEERS" = any ] || fail 'the mend did not set the right one'
}

fault_variables_valid() {
    export FI_DAT_CRC=maybe FI_DAT_IFACE=eth9,lo,10.0.0.0/99
    sees variables-valid WARN 'FI_DAT_CRC="maybe" is ignored; .*10.0.0.0/99 fits nothing' \
        'FI_DAT_CRC: it has to be auto, on or off; FI_DAT_IFACE: a range'
    export FI_DAT_CRC=on FI_DAT_IFACE=eth9,lo
    gone variables-valid
}

fault_variables_agree() {
    export FI_DAT_TRANSPORT=soft FI_DAT_RETRIES=3
    sees variables-agree WARN 'FI_DAT_RETRIES=3 has no effect, since FI_DAT_TRANSPORT=soft' \
        '^unset FI_DAT_RETRIES, or unset FI_DAT_TRANSPORT$'
    carry_out '' ,
    gone variables-agree
}

# --- addresses and names ------------------------------------------------------------

fault_address_order() {
    export FI_DAT_IFACE=lo
    sees address-order WARN 'nothing but lo 127.0.0.1 and lo ::1' 'export FI_DAT_IFACE=eth9$'
    carry_out 'or '
    gone address-order
}

fault_address_order__without_any() {
    ip link set eth9 down
    hosts '127.0.0.1 dathost'
    sees address-order WARN 'nothing but lo 127.0.0.1' 'ip addr add .*; ip link set NAME up'
    ip link set eth9 up
    ip addr add 2001:db8::2/64 dev eth9 nodad
    ip route add default via $there dev eth9
    hosts "$address dathost"
    gone address-order
}

fault_address_bridge() {
    ip addr flush dev eth9
    ip link add docker0 type bridge
    ip addr add 172.17.0.1/16 dev docker0
    ip link set docker0 up
    hosts '172.17.0.1 dathost'
    sees address-bridge WARN '172.17.0.1 of docker0, is that of a bridge' \
        'give an interface that leads to other hosts an address'
    ip addr add $address/24 dev eth9
    ip route add default via $there dev eth9
    gone address-bridge
}

fault_address_carrier() {
    ip link set far down
    sees address-carrier WARN 'eth9 is up and without a carrier' 'see to cable .*ip link set eth9 down'
    ip link set far up
    gone address-carrier
}

fault_address_ipv6() {
    echo 100 >/proc/sys/net/ipv6/conf/eth9/dad_transmits
    ip addr add 2001:db8::7/64 dev eth9
    sees address-ipv6 WARN '2001:0db8:[0:]*:0007 of eth9 cannot be used yet' 'ip addr add .* nodad$'
    carry_out 'or: '
    gone address-ipv6
}

fault_name_host() {
    hosts '127.0.1.1 dathost'
    sees name-host WARN 'dathost stands for 127.0.1.1, which only this host reaches' \
        "line 3 of /etc/hosts instead: $address dathost\$"
    hosts "${mend##*instead: }"
    gone name-host
}

fault_name_host__stands_for_nothing() {
    hosts
    sees name-host WARN 'the name of this host, dathost, stands for nothing' \
        "^write into /etc/hosts: $address dathost\$"
    hosts "${mend#*: }"
    gone name-host
}

fault_name_host__of_another_host() {
    hosts '198.51.100.9 dathost'
    sees name-host WARN '198.51.100.9 is no address of this host' "/etc/hosts: $address dathost\$"
    hosts "${mend#*: }"
    gone name-host
}

fault_name_localhost() {
    echo 1 >/proc/sys/net/ipv6/conf/lo/disable_ipv6
    sees name-localhost WARN 'localhost stands for ::1, which no interface has' \
        '^sysctl -w net.ipv6.conf.lo.disable_ipv6=0, or'
    carry_out '' ,
    gone name-localhost
}

# --- within the host ----------------------------------------------------------------

fault_loopback_connect() {
    ip link set lo down
    sees loopback-connect FAIL 'the loopback interface is down' 'ip link set lo up$'
    carry_out
    gone loopback-connect
}

fault_loopback_memory() {
    export FI_DAT_SHM=0
    sees loopback-memory WARN 'use TCP with each other' '^unset FI_DAT_SHM$'
    carry_out
    gone loopback-memory
}

fault_loopback_memory__none_is_granted() {
    export DAT_FAULT=memory LD_PRELOAD=$preload
    sees loopback-memory WARN 'use TCP with each other' 'let memfd_create\(2\)'
    grep -q 'cause: .*Permission denied' "$work/out" || fail "no cause: $(<"$work/out")"
    unset DAT_FAULT
    gone loopback-memory
}

# process_vm_readv(2) fails with EPERM, as in many containers.
fault_loopback_copies() {
    prefix=(python3 "$root/test/transport/without_copying.py")
    sees loopback-copies WARN 'come in pieces' 'docker run --cap-add SYS_PTRACE'
    grep -q 'cause: process_vm_readv(2): Operation not permitted; .*seccomp' "$work/out" ||
        fail "no cause: $(<"$work/out")"
    prefix=()
    gone loopback-copies
}

# A file in the place of the kernel's setting of Yama.
fault_loopback_copies__by_yama() {
    fault_loopback_copies
    sh -c "$yama_forbids"
    prefix=(python3 "$root/test/transport/without_copying.py")
    sees loopback-copies WARN 'come in pieces' '^as root: sysctl -w kernel.yama.ptrace_scope=0$'
    umount /proc/sys/kernel
    prefix=()
    gone loopback-copies
}

# --- limits -------------------------------------------------------------------------

fault_limit_files() {
    ulimit -S -n 256
    sees limit-files WARN 'RLIMIT_NOFILE is 256$' '^ulimit -n 4096$'
    carry_out
    gone limit-files
}

fault_limit_memory() {
    ulimit -S -v 3000000
    sees limit-memory WARN 'RLIMIT_AS is 2 GiB$' '^ulimit -v unlimited$'
    carry_out
    gone limit-memory
}

fault_limit_locked() {
    make_device
    export DAT_LOCKED=65536
    sees limit-locked WARN 'RLIMIT_MEMLOCK is 64 KiB$' '^ulimit -l unlimited$'
    export DAT_LOCKED=unlimited
    gone limit-locked
}

fault_limit_backlog() {
    echo 16 >/proc/sys/net/core/somaxconn
    sees limit-backlog WARN 'somaxconn is 16$' 'sysctl -w net.core.somaxconn=4096$'
    carry_out
    gone limit-backlog
}

fault_limit_ports() {
    echo 40000 40099 >/proc/sys/net/ipv4/ip_local_port_range
    sees limit-ports WARN 'has 100 ports, 40000 to 40099$' "ip_local_port_range='32768 60999'\$"
    carry_out
    gone limit-ports
}

# --- RDMA devices -------------------------------------------------------------------

fault_rdma_modules() {
    make_device
    rm /dev/infiniband/rdma_cm
    sees rdma-modules FAIL 'there is no /dev/infiniband/rdma_cm' '^as root: modprobe rdma_ucm$'
    touch /dev/infiniband/rdma_cm # as the module does
    gone rdma-modules
}

fault_rdma_permission() {
    make_device
    chmod 000 /dev/infiniband/rdma_cm
    prefix=(setpriv "--bounding-set=-dac_override,-dac_read_search")
    sees rdma-permission FAIL '/dev/infiniband/rdma_cm: Permission denied' \
        'chmod 0666 /dev/infiniband/rdma_cm /dev/infiniband/uverbs\*$'
    carry_out
    gone rdma-permission
}

fault_rdma_links() {
    make_device
    echo '1: DOWN' >$device/state
    sees rdma-links WARN 'fake0/1 1: DOWN \(Ethernet\) on eth9' 'ip link set eth9 up$'
    echo '4: ACTIVE' >$device/state
    gone rdma-links
}

fault_rdma_gids() {
    make_device
    echo 0000:0000:0000:0000:0000:0000:0000:0000 >$device/gids/0
    sees rdma-gids WARN 'fake0/1 has no GID' 'ip addr add ADDRESS/PREFIX dev eth9$'
    echo 0000:0000:0000:0000:0000:ffff:cb00:7102 >$device/gids/0
    gone rdma-gids
}

# --- libraries ----------------------------------------------------------------------

# Another library of that name is found before dat's.
two_libraries() { # file check
    mkdir "$work/genuine" "$work/ours"
    cp "$preload" "$work/genuine/$1"
    cp "$build/.libs/libdat-fi.so" "$work/ours/$1" # what makes it one of dat's
    export LD_LIBRARY_PATH=$work/genuine:$work/ours
    sees "$2" WARN "programs load $work/genuine/$1, by LD_LIBRARY_PATH, which is not dat's" \
        "^export LD_LIBRARY_PATH=$work/ours:"
    carry_out
    gone "$2"
    grep -qF " $work/ours/$1, by LD_LIBRARY_PATH" "$work/out" || fail "$(grep "$2" "$work/out")"
}
fault_library_dat2() { two_libraries libdat2.so.2 library-dat2; }
fault_library_dat() { two_libraries libdat.so.1 library-dat; }
fault_library_rpma() { two_libraries librpma.so.0 library-rpma; }

# What it needs is not there.
fault_library_rpma__incomplete() {
    mkdir "$work/ours"
    echo 'int missing(void); int here(void) { return missing(); }' >"$work/x.c"
    cc -shared -fPIC -o "$work/libneeded.so" -x c - <<<'int missing(void) { return 0; }' &&
        cc -shared -fPIC -o "$work/ours/librpma.so.0" "$work/x.c" -L"$work" -lneeded ||
        fail 'no library can be made'
    export LD_LIBRARY_PATH=$work/ours
    sees library-rpma FAIL 'programs cannot load librpma.so.0' '^install what is missing'
    rm "$work/ours/librpma.so.0"
    look
    [ -z "$wrong" ] || fail "$wrong"
}

with_library() {
    mkdir "$work/ours"
    cp "$build/.libs/libdat-fi.so" "$work/ours/libdat2.so.2"
    export LD_LIBRARY_PATH=$work/ours DAT_OVERRIDE=$work/dat.conf
    line='dat-eth9 u2.0 nonthreadsafe default libdat2.so.2 dat.2.0 "eth9 0" ""'
}

fault_conf_file() {
    with_library
    printf '%s\n' "$line" 'dat-lo u2.0 perhaps default libdat2.so.2 dat.2.0 "lo 0" ""' >"$work/dat.conf"
    sees conf-file WARN 'dat.conf: 1 line is ignored, the first is line 2$' 'man dat_conf'
    grep -q 'cause: column 13: expected threadsafe or nonthreadsafe' "$work/out" ||
        fail "no cause: $(<"$work/out")"
    sed -i 's/perhaps/nonthreadsafe/' "$work/dat.conf"
    gone conf-file
}

fault_conf_file__that_is_not_there() {
    with_library
    sees conf-file WARN 'dat.conf cannot be read' '^unset DAT_OVERRIDE, or'
    echo "$line" >"$work/dat.conf"
    gone conf-file
}

fault_conf_devices() {
    with_library
    printf '%s\n' "$line" "${line//eth9/eth77}" >"$work/dat.conf"
    sees conf-devices WARN '1 entry names what this host has not: dat-eth77 \(eth77\)' 'eth9'
    sed -i /eth77/d "$work/dat.conf"
    gone conf-devices
}

# --- Open MPI -----------------------------------------------------------------------

fault_mpi_command() {
    with=(--mpi)
    export OMPI_MCA_mtl=ofi
    local path=$PATH
    mkdir "$work/bin" # as if there were none
    printf '#!/bin/sh\nexit 1\n' >"$work/bin/ompi_info"
    chmod +x "$work/bin/ompi_info"
    PATH=$work/bin:$path
    sees mpi-command FAIL 'there is no ompi_info in PATH' 'openmpi-bin'
    PATH=$path
    gone mpi-command
    grep -q "Open MPI [0-9][0-9.]*: mpirun -np 2 .*_include dat -x 'FI_PROVIDER=^ofi_rxm' -x FI_PROVIDER_PATH PROGRAM" "$work/out" ||
        fail "the whole line is not there: $(<"$work/out")"
}

fault_mpi_parameters() {
    with=(--mpi)
    mkdir "$work/.openmpi"
    echo 'mtl = ^ofi' >"$work/.openmpi/mca-params.conf"
    sees mpi-parameters WARN 'mca-params.conf says mtl = \^ofi$' '; or export OMPI_MCA_mtl=ofi$'
    carry_out '; or '
    gone mpi-parameters
    export OMPI_MCA_pml=ob1
    sees mpi-parameters WARN 'the environment says OMPI_MCA_pml=ob1$' 'export OMPI_MCA_pml=cm$'
    carry_out '; or '
    gone mpi-parameters
}

# --- a peer -------------------------------------------------------------------------

fault_peer_name() {
    serve_there
    with=(--peer "farhost:$port")
    sees peer-name FAIL '"farhost" stands for no address' '^write `ADDRESS farhost` into /etc/hosts'
    hosts "$address dathost" "$there farhost"
    gone peer-name
}

fault_peer_route() {
    serve_there 'ip addr add 198.51.100.1/32 dev lo'
    with=(--peer "198.51.100.1:$port")
    ip route add unreachable 198.51.100.0/24
    sees peer-route FAIL 'no route leads to 198.51.100.1$' 'ip route add 198.51.100.1 via ROUTER'
    ip route del unreachable 198.51.100.0/24
    ip route add 198.51.100.1 via $there
    gone peer-route
}

fault_peer_answer() {
    serve_there
    with=(--peer "$there:9")
    sees peer-answer FAIL "$there:9 refuses\$" '^there: dat_doctor --serve --port 9$'
    with=(--peer "$there:$port")
    gone peer-answer
}

fault_peer_answer__filtered() {
    serve_there
    on_far ip route add blackhole $address
    sees peer-answer FAIL "$there:$port does not answer within 3 s" 'let TCP through on the way'
    on_far ip route del blackhole $address
    gone peer-answer
}

fault_peer_versions() {
    serve_there : env DAT_FAULT=version LD_PRELOAD="$preload"
    sees peer-versions WARN 'there .*, provider 7\.5$' 'install one version on both'
    serve_beside
    gone peer-versions
}

# Between the two is a bridge, and its port to the peer takes shorter packets than either end.
fault_peer_mtu() {
    far=end
    mkfifo "$work/made"
    unshare --net bash -c "echo >'$work/made'; exec sleep 600" &
    middle=$!
    read -r _ <"$work/made"
    ip link set far netns $middle
    ip link add end type veth peer name near
    ip link set near netns $middle
    nsenter --net=/proc/$middle/ns/net sh -c 'ip link add between type bridge &&
        ip link set far master between && ip link set near master between &&
        ip link set between up && ip link set far up && ip link set near up mtu 1300' ||
        fail 'no bridge can be made'
    serve_there
    sees peer-mtu FAIL 'packets of 1400 and 1500 bytes on the way there, and those of .* get lost' \
        'on both: ip link set eth9 mtu 1300;'
    carry_out 'on both: ' ';'
    on_far ip link set wire mtu 1300
    gone peer-mtu
}

# A filter that lets some ports through, and not those of most programs.
fault_peer_connect() {
    serve_port=4711
    serve_there
    ip rule add pref 10 ipproto tcp dport 32768-60999 unreachable || fail 'there can be no filter'
    sees peer-connect FAIL 'no connection: ' '^let all TCP ports through, there'
    grep -q 'cause: no connection from .* (eth9) to ' "$work/out" || fail "no cause: $(<"$work/out")"
    ip rule del pref 10
    gone peer-connect
}

fault_peer_link() {
    serve_here unshare --pid --fork --kill-child --mount-proc
    sees peer-link WARN 'come in pieces' 'docker run --pid=host'
    stop $serving
    serve_here
    gone peer-link
}

# Who may read everything all the same, since the build may be in a folder that is closed to others.
fault_peer_link__of_another_user() {
    serve_here setpriv --reuid=65534 --inh-caps=+dac_override,+dac_read_search \
        --ambient-caps=+dac_override,+dac_read_search
    sees peer-link WARN 'processes of this host use TCP with each other' '^run both as one user, or'
    grep -q 'cause: .* of another user' "$work/out" || fail "no cause: $(<"$work/out")"
    stop $serving
    serve_here
    gone peer-link
}

fault_peer_speed() {
    serve_there 'tc qdisc add dev wire root tbf rate 50mbit burst 100k latency 100ms'
    sees peer-speed WARN '64 bytes take .* MB/s there, .* MB/s back' '^see to the way back: .*tc qdisc'
    on_far tc qdisc del dev wire root
    gone peer-speed
}

# --- one of them ----------------------------------------------------------------------

declare -F "$fault" >/dev/null || fail "there is no $fault"
reason=$( (make_host) 2>&1) || fail "no host can be made: $reason"
"$fault"
echo "PASS: $fault"
