# shellcheck shell=bash disable=SC2034,SC2086,SC2154
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The provider over the devices of the guest, by FI_DAT_TRANSPORT=verbs: what of
# suite_verbs.sh and suite_programs.sh is tried each time.
. "$DAT_SRCDIR/test/vm/suite_verbs.sh"
. "$DAT_SRCDIR/test/vm/suite_programs.sh"

rdm='@(tagged*|a_@(large|flood)*|unexpected*|what_@(both|was|is)*|messages_of*|rdma_*|a_de*|many*|another*|remote_data*)'
tests=(
    "60 rping_over_rxe__serves_rpings_client rping_server rxe"
    "60 rping_over_rxe__is_served_by_rpings_server rping_client rxe"
    "60 rping_over_siw__serves_rpings_client rping_server siw"
    "60 rping_over_siw__is_served_by_rpings_server rping_client siw"
    "90 sends_over_siw__arrive with on_device siw then both_ways sends"
    "90 sends_over_rxe__arrive with on_device rxe then both_ways sends"
    "120 writes_and_reads_over_siw__are_served with on_device siw then both_ways transfers"
    "120 writes_and_reads_over_rxe__are_served with on_device rxe then both_ways transfers"
    "60 reject_over_siw__arrives with on_device siw then rejects"
    "60 reject_over_rxe__arrives with on_device rxe then rejects"
    "240 five_hundred_rounds_over_siw__leave_nothing with on_device siw then rounds"
    "120 largest_queues_over_rxe program rxe transport_dat --filter dat_*/largest_*"
    "120 largest_queues_over_siw program siw transport_dat --filter dat_*/largest_*"
    "120 link_down_in_mid_transfer__breaks_once with on_device siw then link_down"
    "90 no_receive_at_the_peer__ends_with_receiver_not_ready with on_device rxe then rnr_exhausted"
    "60 little_memory_may_be_locked__is_said memlock"
    "60 no_permission_on_the_device__is_said no_permission"
    "60 port_down__is_told with ours_on siw then port_down"
    "90 rxe_taken_away__ends_its_connections with ours_on rxe then removed rxe0 type rxe netdev r0"
    "90 disconnect_by_verbs__ends_both with soft_to_verbs then both_ways disconnect_there"
    "60 software_that_speaks_first_to_siw__is_heard with soft_to_verbs then speaks_first"
    "60 verbs_that_speaks_first_over_siw__is_heard with ours_on siw then speaks_first"
    "60 siw_that_looks_after_it_has_replied__is_told_again on_siw late_peer"
    "60 posts_to_a_peer_that_goes_over_siw__kill_nobody on_siw gone_peer"
    "90 peer_killed_over_rxe__ends_once with on_device rxe then both_ways killed_there"
    "90 siw_taken_away__ends_its_connections with ours_on siw then removed siw0 type siw netdev s0"
    "90 siw_taken_away_in_mid_connect__ends_the_attempt with on_device siw then removed_while_connecting"
    "60 message_before_its_sender_confirms__makes_the_connection with on_device rxe then unconfirmed"
    "90 address_that_is_silent_over_siw__blocks_nobody silent_peer siw s0"
    "90 peer_that_is_silent_over_siw__blocks_nobody on_siw silent_peer"
    "120 peer_that_answers_nothing__ends_with_retries_exhausted with on_device rxe then retries_exhausted"
    "120 captured_session_between_verbs_on_siw__has_no_malformed_frame with siw_hosts_ours then captured other t1 both_ways few_of_each"
    "120 fork_over_rxe program rxe forked"
    "120 atomics_over_rxe program rxe transport_surface --filter atomic/of_devices*"
    "120 owed_over_rxe program rxe transport_owed --filter owed/posts_to_a_device*"
    "120 owed_over_siw program siw transport_owed --filter owed/posts_to_a_device*"
    "120 windows_over_rxe program rxe transport_dat --filter dat_window/bound__*"
    "120 shared_receives_over_siw program siw transport_surface --filter shared_receive/messages_of*"
    "400 reliable_datagrams_over_rxe program rxe transport_rdm --filter rdm/$rdm"
    "400 reliable_datagrams_over_siw program siw transport_rdm --filter rdm/$rdm"
    "60 queue_pair_over_rxe__is_there_before_its_connection with on_device rxe then next_queue_pair"
    "60 inline_data_of_siw__is_as_much_as_it_has with on_device siw then inline_data"
    "60 nobody_listens_over_rxe__is_said unmade $rxe r0"
    "60 nobody_listens_over_siw__is_said unmade $siw s0"
    "60 ping_between_processes_over_rxe ping $rxe rxe0"
    "60 ping_between_processes_over_siw ping $siw siw0"
)

on_siw() { # program
    FI_DAT_TRANSPORT=verbs "$vm/$1" $siw
}

# The side that is called sends first, and the other nothing.
speaks_first() {
    start_peers
    join b 20 a 30 $a_at
    expect b ok recv 1 1000
    expect a ok send 1 1000
    expect a 'results 1 0 0' finish
    expect b 'results 1 0 0' finish
}

# Why there is no connection, over a device as over TCP.
unmade() { # address interface
    export FI_DAT_TRANSPORT=verbs FI_LOG_LEVEL=warn FI_LOG_PROV=dat
    start a bash -c 'exec "$0" "$1" 2>"$2"' "$DAT_BUILDDIR/test/transport/peer" $1 "$pipes/said"
    expect a ok connect $1 9 0
    expect a 'error 111 *' event
    grep -Eq "no connection from $1:[0-9]+ \\($2\\) to $1:9: nobody listens there" "$pipes/said" ||
        die "it says: $(cat "$pipes/said")"
}

# And each says which link its connection has.
ping() { # address device
    local name
    export FI_DAT_TRANSPORT=verbs FI_LOG_LEVEL=info FI_LOG_PROV=dat
    for name in a b; do
        start $name bash -c 'exec "$0" "$1" 2>"$2"' "$DAT_BUILDDIR/test/transport/peer" $1 "$pipes/said.$name"
    done
    join a 20 b 30 $1
    for name in a b; do
        [ "$(grep -c "the connection with $1:[0-9]* uses the RDMA device $2/1\$" "$pipes/said.$name")" -eq 1 ] ||
            die "$name says: $(grep 'the connection with' "$pipes/said.$name")"
    done
    expect a ok recv 1 1000
    expect b ok send 1 1000
    expect a 'results 1 0 0' finish
    expect b 'results 1 0 0' finish
    expect a ok disconnect graceful
    expect b 'shutdown *' event
}
