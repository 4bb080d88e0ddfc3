// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The table of applicable.h.
#include "applicable.h"

#include "../exceptions.h"

namespace dat::test {
namespace {

constexpr char kAnswered[] =
    "a send completes when the peer's device has answered it, and so not before there is a receive";
constexpr char kInOrder[] =
    "a queue pair carries requests out in order: a message that waits for a receive holds up the "
    "reads behind it";
constexpr char kTcpPort[] = "the port where nobody listens is one of TCP on loopback";
constexpr char kCmPort[] = "the connection manager gives a port to one identifier alone";
constexpr char kLess[] = "the connection manager carries less private data (U-63)";
constexpr char kNoReceive[] =
    "the device ends a connection on which a message finds no receive: RFC 5040 has no other way";
constexpr char kNoMulti[] = "devices do not offer FI_MULTI_RECV";
constexpr char kTaken[] = "a receive that the device has taken cannot be taken back";
constexpr char kNotTold[] =
    "a device does not tell what peers do to memory, nor which messages are solicited";
constexpr char kByAddress[] = "memory of a device is named by its address";
constexpr char kOtherName[] = "a device is a domain of another name than its interface";
constexpr char kByDevice[] = "keys are the device's, and of what is mapped when it is registered";
constexpr char kSomeRma[] =
    "over a device FI_EP_RDM has no FI_DELIVERY_COMPLETE by default with FI_RMA";
constexpr char kNoDelivery[] = "devices do not offer FI_DELIVERY_COMPLETE";
constexpr char kDataTakes[] = "a write with remote CQ data takes a receive on a device (U-62)";
constexpr char kStopped[] = "the device of a process that is stopped goes on answering";
constexpr char kRefused[] =
    "an iWARP device completes a write when it has been sent, and tells of a refused access by "
    "the end of the connection alone (U-61)";
constexpr char kNoWindows[] = "siw has no memory windows";
constexpr char kLikeReject[] = "siw tells of a connection that is closed unanswered as of a reject";
constexpr char kDepths[] =
    "an iWARP device does not tell both sides how many reads the other one serves";
constexpr char kOneSegment[] = "the device reads into one segment";
constexpr char kAnyEnd[] =
    "an iWARP device tells of a refused message by the end of the connection alone (U-61)";

constexpr char kStops[] = "Linux's siw stops the kernel where a connection ends between its accept "
                          "and the first frame that its initiator has promised";

constexpr Exception kExceptions[] = {
    {"rxe", "message_no_receive/on_both_sides__reads_still_complete", kInOrder},
    {"rxe", "message_transmit_complete/with_no_receive_and_nothing_staged__waits_for_it",
     kAnswered},
    {"rxe", "message_too_long/for_a_receive_posted_later__breaks_the_connection", kAnswered},
    {"rxe", "end_peer_closed/behind_data_without_a_receive__ends_behind_the_grace", kAnswered},
    {"rxe", "end_peer_closed/behind_data_that_is_received_within_the_grace__loses_nothing",
     kAnswered},
    {"rxe", "connect_nobody_listens/port_is_closed__is_refused", kTcpPort},
    {"rxe", "connect_nobody_listens/with_patience__is_tried_again", kTcpPort},
    {"rxe", "connect_nobody_listens/at_the_end_of_patience__is_refused", kTcpPort},
    {"rxe", "listen_on_port/of_an_outgoing_connection__is_free", kCmPort},
    {"*siw*", "listen_on_port/of_an_outgoing_connection__is_free", kCmPort},
    {"rxe", "listen_on_port_0/named_and_not_listening_yet__another_socket_cannot_take_its_port",
     kCmPort},
    {"*siw*", "listen_on_port_0/named_and_not_listening_yet__another_socket_cannot_take_its_port",
     kCmPort},
    {"rxe", "connect_private_data/option_of_endpoint_and_listener__says_508", kLess},
    {"rxe", "connect_reject/with_256_bytes__delivers_them", kLess},
    {"rxe", "cancelled_receive/in_the_middle__leaves_the_others", kTaken},
    {"rxe", "counter/of_each_kind__counts_what_succeeded", kNotTold},
    {"rxe", "dat_region/zero_based__is_named_by_offset", kByAddress},
    {"rxe", "data_write/left_when_the_connection_ends__comes_before_the_event", kDataTakes},
    {"rxe", "data_write/more_than_the_queue_holds__waits_and_none_is_lost", kDataTakes},
    {"rxe", "data_write/without_FI_RX_CQ_DATA__takes_no_receive", kDataTakes},
    {"rxe", "info_interface/named_by_the_environment__is_the_only_one", kOtherName},
    {"rxe", "info_hints/what_mpi_libraries_ask_for__is_offered", kSomeRma},
    {"rxe", "info_rxm/with_the_order_of_atomics__is_offered", kSomeRma},
    {"rxe", "killed_peer/amid_our_large_send__flushes_it", kStopped},
    {"rxe", "killed_peer/amid_our_small_sends__completes_each_once", kStopped},
    {"rxe", "killed_peer/amid_our_write__flushes_it", kStopped},
    {"rxe", "killed_peer/while_it_drains__ends_this_side_once",
     "a message that has no receive yet waits at its sender, and ends with it"},
    {"rxe", "level/of_a_send_without_a_receive__is_kept", kAnswered},
    {"rxe", "level/of_a_write_that_is_refused__tells_at_once", kNoDelivery},
    {"rxe", "multi_receive/*", kNoMulti},
    {"rxe", "rdm/a_region_of_all_memory__is_what_is_mapped_when_a_peer_comes", kByDevice},
    {"rxe", "rdm/keys_of_8_bytes__reach_the_memory_of_a_peer", kByDevice},
    {"rxe", "rdm/an_injected_write__is_counted_at_the_level_of_the_endpoint", kSomeRma},
    {"rxe", "rdm/reads_of_a_peer__are_counted_and_messages_that_it_reads_are_not", kNotTold},
    {"rxe", "solicited_send/marks_the_receivers_completion", kNotTold},
    {"rxe", "atomic/each_operation__does_what_it_says",
     "a device has the operations that of_devices__do_what_they_say tries"},
    {"rxe", "dat_window/beyond_its_end__is_not_reached",
     "Linux's rxe holds accesses through a window against the bounds of its region alone"},
    {"rxe", "dat_window/not_to_be_invalidated__breaks_the_connection",
     "a window of type 2 can always be ended by the peer of the connection that bound it"},
    {"*siw", "cancelled_receive/in_the_middle__leaves_the_others", kTaken},
    {"siw*", "connect_nobody_listens/port_is_closed__is_refused", kTcpPort},
    {"siw*", "connect_nobody_listens/with_patience__is_tried_again", kTcpPort},
    {"siw*", "connect_nobody_listens/at_the_end_of_patience__is_refused", kTcpPort},
    {"*siw*", "connect_private_data/option_of_endpoint_and_listener__says_508", kLess},
    {"*siw*", "connect_reject/with_256_bytes__delivers_them", kLess},
    {"soft_to_siw", "connect_private_data/of_25[56]_bytes__arrives", kLess},
    {"soft_to_siw", "connect_private_data/of_508_bytes__arrives", kLess},
    {"*siw*", "end_abrupt/with_operations_outstanding__flushes_them_in_order", kNoReceive},
    {"*siw*", "end_close/while_connected__flushes_and_ends_the_peer", kNoReceive},
    {"*siw*", "end_graceful/peer_never_posts_a_receive__ends_with_receiver_not_ready", kNoReceive},
    {"*siw*", "end_graceful/then_abrupt__stops_waiting", kNoReceive},
    {"*siw*", "end_graceful/while_the_peer_disconnects__ends_once", kNoReceive},
    {"*siw*", "end_graceful/while_the_peer_has_requests__flushes_the_peers", kNoReceive},
    {"*siw*", "end_graceful/while_the_peer_has_no_receives__waits_and_refuses_requests",
     kNoReceive},
    {"*siw*", "end_never/no_receive_while_connected__stays_connected_past_the_limit", kNoReceive},
    {"*siw*", "end_shutdown/with_close_graceful__drains", kNoReceive},
    {"*siw*", "end_shutdown/by_default__is_abrupt", kNoReceive},
    {"*siw*", "reset_after/broken__connects", kAnyEnd},
    {"*siw*", "reset_in_wrong_state/connecting_connected_or_draining__is_refused", kNoReceive},
    {"siw*", "counter/of_each_kind__counts_what_succeeded", kNotTold},
    {"*siw", "dat_modify/reads__are_limited_by_both_sides", kDepths},
    {"*siw", "dat_region/zero_based__is_named_by_offset", kByAddress},
    {"*siw*", "dat_window/*", kNoWindows},
    {"siw", "dat_halves/a_failed_write__*", "over iWARP a write has completed when it is sent"},
    {"siw*", "dat_zone/changed_under_a_receive__fails_it_when_a_message_comes", kAnyEnd},
    {"siw*", "dat_zone/key_that_is_too_long__is_refused_everywhere", kNoWindows},
    {"*siw*", "dat_zone/region_of_another__is_not_reached", kRefused},
    {"*siw", "killed_peer/amid_our_large_send__flushes_it", kStopped},
    {"*siw", "killed_peer/amid_our_small_sends__completes_each_once", kStopped},
    {"*siw", "killed_peer/amid_our_write__flushes_it", kStopped},
    {"*siw*", "killed_peer/before_its_ready_to_receive__fails_the_accept",
     "siw is connected when it has accepted"},
    {"*siw", "killed_peer/while_we_drain__ends_once", kNoReceive},
    {"*siw*", "killed_peer/while_it_drains__ends_this_side_once", kNoReceive},
    {"*siw*", "killed_peer/while_our_request_is_pending__is_refused", kLikeReject},
    {"*siw*", "killed_peer/with_the_request_sent__is_refused", kLikeReject},
    {"*siw", "process_stopped/and_we_disconnect__ends_here_without_it", kNoReceive},
    {"*siw*", "service_provide/rejected_refused_or_unread__closes_the_endpoint", kLikeReject},
    {"*siw*", "service_request/refused__is_as_if_nobody_listened", kLikeReject},
    {"*siw*", "service_reserve/closed_with_the_event_unread__refuses_and_frees_the_endpoint",
     kLikeReject},
    {"*siw*", "data_*/*", "iWARP devices have no remote CQ data"},
    {"siw*", "info_interface/named_by_the_environment__is_the_only_one", kOtherName},
    {"siw*", "info_hints/what_mpi_libraries_ask_for__is_offered", kSomeRma},
    {"siw*", "info_rxm/with_the_order_of_atomics__is_offered", kSomeRma},
    {"*siw*", "level/of_a_send_without_a_receive__is_kept", kNoReceive},
    {"*siw*", "level/of_a_write_that_is_refused__tells_at_once", kRefused},
    {"*siw", "multi_receive/*", kNoMulti},
    {"siw*", "multi_receive/in_several_segments__is_refused", kNoMulti},
    {"siw", "rdm/a_region_of_all_memory__is_what_is_mapped_when_a_peer_comes", kByDevice},
    {"siw", "rdm/keys_of_8_bytes__reach_the_memory_of_a_peer", kByDevice},
    {"siw", "rdm/an_injected_write__is_counted_at_the_level_of_the_endpoint", kSomeRma},
    {"siw", "rdm/reads_of_a_peer__are_counted_and_messages_that_it_reads_are_not", kNotTold},
    {"*siw*", "solicited_send/marks_the_receivers_completion", kNotTold},
    {"*siw*", "atomic/*", "iWARP devices have no atomics"},
    {"*siw*", "message_no_receive/*", kNoReceive},
    {"*siw*", "shared_receive/posted_late__serve_all_who_wait", kNoReceive},
    {"*siw*", "message_transmit_complete/with_no_receive_and_nothing_staged__waits_for_it",
     kNoReceive},
    {"*siw*", "message_too_long/for_a_receive_posted_later__breaks_the_connection", kNoReceive},
    {"*siw*", "message_too_long/for_the_receive__breaks_the_connection_on_both_sides", kAnyEnd},
    {"*siw*", "rma_bounds/*", kRefused},
    {"*siw*", "rma_key/*", kRefused},
    {"*siw*", "rma_level/confirmed_write__is_in_its_place",
     "an iWARP device completes a write when it has been sent"},
    {"*siw*", "rma_rights/*", kRefused},
    {"*siw*", "rma_refused/*", kRefused},
    {"*siw*", "mr_rights/that_a_combination_leaves_out__are_refused", kRefused},
    {"*siw*", "mr_again/overlapping__the_closed_one_is_refused", kRefused},
    {"*siw*", "mr_again/with_less_under_the_same_key__is_refused_what_it_had", kRefused},
    {"*siw*", "rma_segments/gathered_write_and_scattered_read__are_exact", kOneSegment},
    {"soft_to_siw", "end_close/right_after_accept__*", kStops},
    {"soft_to_siw", "end_of_attempt/while_the_request_is_pending__*", kStops},
    {"soft_to_siw", "reset_after/accept_completion_error__*", kStops},
    {"soft_to_siw", "reset_late/accept_of_an_old_attempt__*", kStops},
    {"siw_to_soft", "end_close/while_draining__flushes_the_requests",
     "siw ends its stream in order, behind what the window of the peer holds up"},
    {"siw_to_soft", "killed_peer/amid_our_small_sends__completes_each_once",
     "an iWARP device completes a message when it has been sent"},
    {"siw_to_soft", "killed_peer/right_after_accept__*", kStops},
    {"siw_to_soft", "killed_peer/while_its_request_is_pending__*", kStops},
};

} // namespace

const char* not_applicable(const char* transport, const char* test) {
    return why_not(kExceptions, transport, test);
}

} // namespace dat::test
