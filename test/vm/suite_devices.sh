# shellcheck shell=bash disable=SC2034,SC2086,SC2154
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The guest itself: its devices are there, and carry the field's own programs; and how
# fi_getinfo() finds them, as libfabric's fi_info shows it.
. "$DAT_SRCDIR/test/vm/raw.sh"

tests=(
    "30 rping_over_siw rping_with_itself $siw"
    "30 rping_over_rxe rping_with_itself $rxe"
    "60 fi_info__lists_a_device_ahead_of_the_software_of_its_address auto_lists_both"
    "60 fi_info_with_verbs_or_soft__lists_those_alone one_transport"
    "60 fi_info_with_an_interface__lists_its_device one_interface"
    "90 device_without_an_address__is_said_with_the_command_that_helps without_address"
)

rping_with_itself() { # address
    rping -s -a "$1" -C 2 -S 100 -V &
    local server=$!
    until_listening rping
    rping -c -a "$1" -C 2 -S 100 -V && wait $server
}

# The domains that fi_info finds in this namespace, or by the command given, in its order. Devices
# that other suites have made are left out.
domains() { # variable=value..., or command...
    env FI_DAT_TRANSPORT=auto FI_LOG_LEVEL=warn FI_LOG_PROV=dat "$@" fi_info -p dat -t FI_EP_MSG \
        >"$pipes/fi_info" 2>"$pipes/messages"
    sed -n 's/^ *domain: //p' "$pipes/fi_info" | grep -xE 'lo|r0|rxe0/1|s0|siw0/1|t1|siw_t1/1'
}

lists() { # expected domains, then as above
    local expected=$1 found
    shift
    found=$(domains "$@" | xargs)
    [ "$found" = "$expected" ] || die "$*: '$found' instead of '$expected'"
}

# s0 has an IPv6 address as well.
auto_lists_both() {
    local found
    found=" $(domains | grep -vx lo | xargs) "
    found=${found/ rxe0\/1 r0 / }
    found=${found/ siw0\/1 s0 / }
    [ "$found" = ' siw0/1 s0 ' ] || die "beside a device and the software each: '$found'"
}

one_transport() {
    local found
    found=$(domains FI_DAT_TRANSPORT=verbs | sort | xargs)
    [ "$found" = 'rxe0/1 siw0/1 siw0/1' ] || die "verbs: '$found'"
    found=$(domains FI_DAT_TRANSPORT=soft | sort -u | xargs)
    [ "$found" = 'lo r0 s0' ] || die "soft: '$found'"
}

one_interface() {
    lists 'rxe0/1 r0' FI_DAT_IFACE=r0
    lists 'siw0/1 s0 siw0/1 s0' FI_DAT_IFACE=s0
    lists 'rxe0/1' FI_DAT_IFACE=r0 FI_DAT_TRANSPORT=verbs
    lists 'r0' FI_DAT_IFACE=r0 FI_DAT_TRANSPORT=soft
}

# In a namespace of its own, in which no other device has an address either.
without_address() {
    local found said='has no fitting IP address.*(ip addr add ADDRESS/PREFIX dev INTERFACE)'
    siw_hosts
    ip -n other addr flush dev t1
    found=$(domains ip netns exec other | sort -u | xargs)
    ip -n other addr add $b_at/24 dev t1
    cat "$pipes/messages"
    [ "$found" = lo ] || die "without an address: '$found'"
    [ "$(grep -c "$said" "$pipes/messages")" -eq 1 ] || die 'it is not said, or more than once'
    found=$(domains ip netns exec other | grep -vx lo | xargs)
    [ "$found" = 'siw_t1/1 t1' ] || die "with an address: '$found'"
    ! grep "$said" "$pipes/messages" || die 'it is said all the same'
}
