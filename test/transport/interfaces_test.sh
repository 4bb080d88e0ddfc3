#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# In which order addresses are offered where a host has several interfaces, and what FI_DAT_IFACE
# leaves of them, as libfabric's fi_info shows it. In a network namespace that is made and removed
# here; the kernel has a bridge first in it, and then the way out. Exit 77, with the reason, where
# that cannot be done.
set -u

tag=${DAT_TEST_TAG:-dat}
host=$tag-$$-i
export FI_PROVIDER=dat FI_PROVIDER_PATH=${DAT_BUILDDIR:-.}/.libs FI_DAT_TRANSPORT=soft
unset FI_DAT_IFACE
said=$(mktemp) || exit 1

skip() {
    echo "SKIP: $*"
    exit 77
}

clean_up() {
    ip netns del "$host" 2>/dev/null
    rm -f "$said"
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

command -v fi_info >/dev/null || skip 'there is no fi_info'
! nm -D "$FI_PROVIDER_PATH/libdat-fi.so" | grep -qE '__(asan|tsan|ubsan)' ||
    skip 'fi_info cannot load a module with sanitizers'
ip netns add "$host" 2>/dev/null || skip 'this user cannot make network namespaces'

# The far end of the way out is in the same namespace.
make_host() {
    set -e
    ip -n "$host" link set lo up
    ip -n "$host" link add docker0 type bridge
    ip -n "$host" link add eth9 type veth peer name far
    ip -n "$host" link add inner type veth peer name member
    ip -n "$host" link add link far name plain0 type macvlan
    ip -n "$host" link set member master docker0
    ip -n "$host" addr add 172.17.0.1/16 dev docker0
    ip -n "$host" addr add 10.7.0.2/24 dev plain0
    ip -n "$host" addr add 203.0.113.2/24 dev eth9
    ip -n "$host" addr add 2001:db8::2/64 dev eth9 nodad
    for name in docker0 eth9 far inner member plain0; do
        ip -n "$host" link set "$name" up
    done
    ip -n "$host" route add default via 203.0.113.1 dev eth9
}
reason=$( (make_host) 2>&1) || skip "this kernel lacks a kind of device: $reason"
for _ in $(seq 100); do # the bridge finds its member
    ip -n "$host" link show docker0 | grep -q LOWER_UP && break
    sleep 0.1
done

failed=0
# The domains that are offered, in their order.
offers() { # expected variable=value...
    local expected=$1 found
    shift
    found=$(ip netns exec "$host" env FI_LOG_LEVEL=warn FI_LOG_PROV=dat "$@" \
        fi_info -p dat -t FI_EP_MSG 2>"$said" | sed -n 's/^ *domain: //p' | xargs)
    if [ "$found" = "$expected" ]; then
        echo "PASS: ${*:-as it is}"
    else
        echo "FAILED: ${*:-as it is}: offered '$found', not '$expected'"
        failed=1
    fi
}
warns() { # pattern
    grep -q "$1" "$said" && return
    echo "FAILED: '$1' is not in:"
    cat "$said"
    failed=1
}

# Behind the others in the kernel's order.
renew_plain0() {
    ip -n "$host" link del plain0
    ip -n "$host" link add link far name plain0 type macvlan
    ip -n "$host" addr add 10.7.0.2/24 dev plain0
    ip -n "$host" link set plain0 up
}

offers 'eth9 eth9 plain0 docker0 lo lo'
offers 'lo lo' FI_DAT_IFACE=lo
offers 'eth9 eth9 plain0 lo lo' "FI_DAT_IFACE=^docker0,virbr*"
offers 'eth9 eth9 plain0' 'FI_DAT_IFACE=eth9,plain*'
offers 'plain0 docker0' FI_DAT_IFACE=10.0.0.0/8,172.16.0.0/12
offers 'plain0' 'FI_DAT_IFACE=10.0.0.0/8,172.16.0.0/12,^docker?'
offers 'eth9' FI_DAT_IFACE=2001:db8::/32
offers 'eth9 eth9' FI_DAT_IFACE=eth9,wlan0
warns 'FI_DAT_IFACE="eth9,wlan0": no interface .* fits wlan0; there are: eth9 plain0 docker0 lo$'
offers 'eth9 eth9' FI_DAT_IFACE=eth9,10.0.0.0/33
warns '10.0.0.0/33 fits nothing'
# One whose speed nobody knows comes behind those that are known, also where the kernel has it first.
if ip -n "$host" link add slow type ifb 2>/dev/null; then
    ip -n "$host" addr add 10.8.0.2/24 dev slow
    ip -n "$host" link set slow up
    renew_plain0
    offers 'eth9 eth9 plain0 slow docker0 lo lo'
    # But first where the default route is on it.
    ip -n "$host" route replace default via 10.8.0.1 dev slow
    offers 'slow plain0 docker0 eth9 eth9 lo lo'
    ip -n "$host" route replace default via 203.0.113.1 dev eth9
    ip -n "$host" link del slow
else
    echo 'not looked at: speeds, for this kernel has no interface without one (ifb)'
fi
# Tunnels come behind it too, though the kernel has them first, until the default route is on one.
if ip -n "$host" link add vx0 type vxlan id 5 dstport 4789 2>/dev/null; then
    ip -n "$host" addr add 10.9.0.2/24 dev vx0
    ip -n "$host" link set vx0 up
    renew_plain0
    offers 'eth9 eth9 plain0 docker0 vx0 lo lo'
    ip -n "$host" link del vx0
else
    echo 'not looked at: vxlan, which this kernel does not have'
fi
if ip -n "$host" tuntap add dev tap0 mode tap 2>/dev/null; then
    ip -n "$host" addr add 10.9.0.2/24 dev tap0
    ip -n "$host" link set tap0 up
    renew_plain0
    # It has a carrier while somebody holds the other end.
    coproc ip netns exec "$host" python3 -c '
import fcntl, struct, sys
with open("/dev/net/tun", "r+b", buffering=0) as tap:
    fcntl.ioctl(tap, 0x400454ca, struct.pack("16sH22x", b"tap0", 0x1002))  # TUNSETIFF: IFF_TAP, IFF_NO_PI
    print("held", flush=True)
    sys.stdin.read()
'
    read -r -u "${COPROC[0]}" _ || { echo 'FAILED: nobody holds tap0'; failed=1; }
    for _ in $(seq 100); do
        ip -n "$host" link show tap0 | grep -q 'state UP' && break
        sleep 0.1
    done
    offers 'eth9 eth9 plain0 docker0 tap0 lo lo'
    ip -n "$host" route replace default via 10.9.0.1 dev tap0
    offers 'tap0 plain0 docker0 eth9 eth9 lo lo'
    ip -n "$host" route replace default via 203.0.113.1 dev eth9
    eval "exec ${COPROC[1]}>&-"
    wait
    ip -n "$host" tuntap del dev tap0 mode tap
else
    echo 'not looked at: tap, which this user cannot make'
fi
# Without the route it is a virtual interface as others are, and the kernel's order counts.
ip -n "$host" route del default
offers 'plain0 docker0 eth9 eth9 lo lo'
exit $failed
