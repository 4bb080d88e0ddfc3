// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// How connections begin and end, and what their events say.
#include "../transport/usage.h"
#include "suite.h"

#include <array>
#include <cstring>
#include <poll.h>
#include <thread>

using namespace dat::test;

namespace {

// What arrives has at least those bytes, and nothing but zeros behind them.
void expect_data(const rpma_conn_private_data& got, std::string_view sent) {
    cr_assert_not_null(got.ptr);
    cr_assert_geq(got.len, sent.size());
    const char* const bytes = static_cast<const char*>(got.ptr);
    cr_assert_eq(std::memcmp(bytes, sent.data(), sent.size()), 0);
    for (std::size_t i = sent.size(); i < got.len; ++i) {
        cr_assert_eq(bytes[i], 0, "byte %zu is %d", i, bytes[i]);
    }
}

std::string some_bytes(std::size_t size) {
    std::string bytes(size, ' ');
    for (std::size_t i = 0; i < size; ++i) {
        bytes[i] = static_cast<char>(i * 7 + 1);
    }
    return bytes;
}

// RP-6.
void leave_one_after_the_other(const Conn& first, const Conn& second) {
    EXPECT_OK(rpma_conn_disconnect(first));
    expect_event(second, RPMA_CONN_CLOSED);
    cr_assert(first.quiet(), "the initiator's CLOSED came before the peer disconnected");
    EXPECT_OK(rpma_conn_disconnect(second));
    expect_last_event(first, RPMA_CONN_CLOSED);
    cr_assert(second.quiet());
}

// RP-8.
void delete_one(Conn& gone, const Conn& left) {
    EXPECT_OK(rpma_conn_delete(&gone.it));
    cr_assert_null(gone.it);
    expect_last_event(left, RPMA_CONN_CLOSED);
}

rpma_conn_private_data data_of(const Conn& conn) {
    rpma_conn_private_data data{};
    NEED(rpma_conn_get_private_data(conn, &data));
    return data;
}

} // namespace

// ---- RP-1: a request names an address that can be resolved -----------------

// RP-1.
RPMA_TEST(rpma_request, to_no_address_at_all__is_refused) {
    Peer peer;
    rpma_conn_req* request = nullptr;
    EXPECT_RESULT(rpma_conn_req_new(peer, "no address", "7", nullptr, &request), RPMA_E_PROVIDER);
    cr_assert_null(request);
}

// RP-1.
RPMA_TEST(rpma_request, to_an_address_without_a_way__is_refused_or_unreachable) {
    Peer peer;
    rpma_conn_req* request = nullptr;
    // The broadcast address of loopback.
    const int result = rpma_conn_req_new(peer, "127.255.255.255", "7", nullptr, &request);
    if (result != 0) {
        cr_assert_eq(result, RPMA_E_PROVIDER, "%s", rpma_err_2str(result));
        cr_assert_null(request);
        return;
    }
    Conn conn;
    answer(conn, request);
    expect_event(conn, RPMA_CONN_UNREACHABLE);
}

// RP-1: what is asked for takes no longer than the timeout, and does not need a listener.
RPMA_TEST(rpma_request, to_a_port_where_nobody_listens__is_made) {
    Peer peer;
    Config config;
    NEED(rpma_conn_cfg_set_timeout(config, 5000));
    rpma_conn_req* request = request_to(peer, free_port(), config);
    EXPECT_OK(rpma_conn_req_delete(&request));
    cr_assert_null(request);
}

// RP-1: a host that does not answer is found out by the timeout.
RPMA_TEST(rpma_request, on_a_device__to_a_dead_host__fails_after_the_timeout) {
    Peer peer;
    Config config;
    NEED(rpma_conn_cfg_set_timeout(config, 300));
    rpma_conn_req* request = nullptr;
    EXPECT_RESULT(rpma_conn_req_new(peer, place().dead, "7", config, &request), RPMA_E_PROVIDER);
    cr_assert_null(request);
}

// ---- RP-2: what connect does with a request --------------------------------

// RP-2.
RPMA_TEST(rpma_connect, with_bad_private_data__consumes_the_request) {
    Peer peer;
    char byte = 0;
    rpma_conn* conn = nullptr;
    rpma_conn_private_data no_length{&byte, 0};
    rpma_conn_private_data no_pointer{nullptr, 1};
    for (const rpma_conn_private_data* data : {&no_length, &no_pointer}) {
        rpma_conn_req* request = request_to(peer, free_port());
        EXPECT_INVAL(rpma_conn_req_connect(&request, data, &conn));
        cr_assert_null(request);
        cr_assert_null(conn);
    }
}

// RP-2.
RPMA_TEST(rpma_connect, without_a_place_for_the_connection__consumes_the_request) {
    Peer peer;
    rpma_conn_req* request = request_to(peer, free_port());
    EXPECT_INVAL(rpma_conn_req_connect(&request, nullptr, nullptr));
    cr_assert_null(request);
}

// RP-2.
RPMA_TEST(rpma_connect, without_a_request__is_refused) {
    rpma_conn* conn = nullptr;
    rpma_conn_req* request = nullptr;
    EXPECT_INVAL(rpma_conn_req_connect(nullptr, nullptr, &conn));
    EXPECT_INVAL(rpma_conn_req_connect(&request, nullptr, &conn));
    cr_assert_null(conn);
}

// RP-2: an incoming request is consumed as well, and its requester is told.
RPMA_TEST(rpma_connect, refused_on_the_passive_side__rejects) {
    Peer peer;
    Listener listener(peer);
    Conn a;
    ask(a, peer, listener.port);
    rpma_conn_req* request = listener.request();
    rpma_conn* conn = nullptr;
    char byte = 0;
    rpma_conn_private_data bad{&byte, 0};
    EXPECT_INVAL(rpma_conn_req_connect(&request, &bad, &conn));
    cr_assert_null(request);
    expect_event(a, RPMA_CONN_REJECTED);
}

// ---- RP-3, RP-4: which events there are ------------------------------------

// RP-3.
RPMA_TEST(rpma_event, numbers_and_names__are_those_of_the_header) {
    cr_assert_eq(RPMA_CONN_UNDEFINED, -1);
    cr_assert_eq(RPMA_CONN_ESTABLISHED, 0);
    cr_assert_eq(RPMA_CONN_CLOSED, 1);
    cr_assert_eq(RPMA_CONN_LOST, 2);
    cr_assert_eq(RPMA_CONN_REJECTED, 3);
    cr_assert_eq(RPMA_CONN_UNREACHABLE, 4);
    cr_assert_str_eq(rpma_utils_conn_event_2str(RPMA_CONN_UNDEFINED), "Undefined connection event");
    cr_assert_str_eq(rpma_utils_conn_event_2str(RPMA_CONN_ESTABLISHED), "Connection established");
    cr_assert_str_eq(rpma_utils_conn_event_2str(RPMA_CONN_CLOSED), "Connection closed");
    cr_assert_str_eq(rpma_utils_conn_event_2str(RPMA_CONN_LOST), "Connection lost");
    cr_assert_str_eq(rpma_utils_conn_event_2str(RPMA_CONN_REJECTED), "Connection rejected");
    cr_assert_str_eq(rpma_utils_conn_event_2str(RPMA_CONN_UNREACHABLE), "Connection unreachable");
    cr_assert_str_eq(rpma_utils_conn_event_2str(static_cast<rpma_conn_event>(5)),
                     "Unsupported connection event");
}

// RP-4.
RPMA_TEST(rpma_event, nobody_listens__is_rejected) {
    Peer peer;
    Conn conn;
    ask(conn, peer, free_port());
    expect_last_event(conn, RPMA_CONN_REJECTED);
}

// RP-4.
RPMA_TEST(rpma_event, request_deleted_by_the_server__is_rejected) {
    Peer peer;
    Listener listener(peer);
    Conn conn;
    ask(conn, peer, listener.port, nullptr, "with data");
    rpma_conn_req* request = listener.request();
    EXPECT_OK(rpma_conn_req_delete(&request));
    cr_assert_null(request);
    expect_event(conn, RPMA_CONN_REJECTED);
    // A reject carries no data.
    const rpma_conn_private_data data = data_of(conn);
    cr_assert_null(data.ptr);
    cr_assert_eq(data.len, 0);
    cr_assert(conn.quiet());
}

// RP-4: the listener goes before it has taken the request.
RPMA_TEST(rpma_event, listener_shut_down_with_a_request__is_rejected) {
    Peer peer;
    Conn conn;
    {
        Listener listener(peer);
        ask(conn, peer, listener.port);
        need(readable(listener.fd(), kSoon), "no request for a connection came");
    }
    expect_event(conn, RPMA_CONN_REJECTED);
}

// RP-4, RP-12: a request that was never connected leaves nothing behind.
RPMA_TEST(rpma_event, request_never_connected__is_nobodys) {
    Peer peer;
    Listener listener(peer);
    rpma_conn_req* request = request_to(peer, listener.port);
    EXPECT_OK(rpma_conn_req_delete(&request));
    cr_assert_not(readable(listener.fd(), kBriefly));
}

// ---- RP-5 to RP-8: how a connection ends -------------------------------------

// RP-5.
RPMA_TEST(rpma_end, disconnect_before_the_answer__is_lost_here_and_rejected_there) {
    Peer peer;
    Listener listener(peer);
    Conn a;
    Conn b;
    ask(a, peer, listener.port);
    EXPECT_OK(rpma_conn_disconnect(a));
    // The request is seen all the same, unless it was taken back before. With a genuine library
    // the requester is told by the answer.
    pollfd first[] = {{listener.fd(), POLLIN, 0}, {a.event_fd(), POLLIN, 0}};
    need(poll(first, 2, kSoon) > 0, "neither an event nor a request came");
    if (readable(listener.fd(), kBriefly)) {
        rpma_conn_req* request = listener.request();
        (void)rpma_conn_req_connect(&request, nullptr, &b.it);
        cr_assert_null(request);
    }
    cr_assert(readable(a.event_fd(), kSoon), "who disconnected is told nothing");
    expect_event(a, RPMA_CONN_LOST);
    if (b.it) {
        cr_assert(readable(b.event_fd(), kSoon), "who accepted is told nothing");
        expect_last_event(b, RPMA_CONN_REJECTED);
    }
    cr_assert(a.quiet());
}

// RP-6, RP-7.
RPMA_TEST(rpma_end, disconnect_by_the_client__closes_the_peer_first) {
    Pair pair;
    leave_one_after_the_other(pair.a, pair.b);
}

// RP-6.
RPMA_TEST(rpma_end, disconnect_by_the_server__closes_the_peer_first) {
    Pair pair;
    leave_one_after_the_other(pair.b, pair.a);
}

// RP-6: the peer deletes its connection in place of a disconnect.
RPMA_TEST(rpma_end, disconnect_and_the_peer_deletes__closes_the_initiator) {
    Pair pair;
    EXPECT_OK(rpma_conn_disconnect(pair.a));
    expect_event(pair.b, RPMA_CONN_CLOSED);
    delete_one(pair.b, pair.a);
}

// RP-6: both at once; each has one CLOSED.
RPMA_TEST(rpma_end, disconnect_by_both__closes_both_once) {
    Pair pair;
    EXPECT_OK(rpma_conn_disconnect(pair.a));
    EXPECT_OK(rpma_conn_disconnect(pair.b));
    expect_last_event(pair.a, RPMA_CONN_CLOSED);
    expect_last_event(pair.b, RPMA_CONN_CLOSED);
}

// RP-7.
RPMA_TEST(rpma_end, disconnect_again__is_no_error) {
    Pair pair;
    for (int i = 0; i < 3; ++i) {
        EXPECT_OK(rpma_conn_disconnect(pair.a));
    }
    expect_event(pair.b, RPMA_CONN_CLOSED);
    for (int i = 0; i < 3; ++i) {
        EXPECT_OK(rpma_conn_disconnect(pair.b));
    }
    expect_event(pair.a, RPMA_CONN_CLOSED);
    EXPECT_OK(rpma_conn_disconnect(pair.a));
    EXPECT_OK(rpma_conn_disconnect(pair.b));
    cr_assert(pair.a.quiet());
    cr_assert(pair.b.quiet());
}

// RP-7.
RPMA_TEST(rpma_end, disconnect_after_rejected__is_no_error) {
    Peer peer;
    Conn conn;
    ask(conn, peer, free_port());
    expect_event(conn, RPMA_CONN_REJECTED);
    EXPECT_OK(rpma_conn_disconnect(conn));
    cr_assert(conn.quiet());
}

// RP-8.
RPMA_TEST(rpma_end, deleted_without_disconnect__closes_the_peer) {
    Pair pair;
    delete_one(pair.a, pair.b);
}

// RP-8: the same of the passive side.
RPMA_TEST(rpma_end, deleted_by_the_server_without_disconnect__closes_the_client) {
    Pair pair;
    delete_one(pair.b, pair.a);
}

// ---- RP-10: waiting for events ----------------------------------------------

// RP-10: a descriptor that does not wait.
RPMA_TEST(rpma_wait, next_event_without_one__says_so) {
    Pair pair;
    set_nonblocking(pair.a.event_fd());
    rpma_conn_event event = RPMA_CONN_UNDEFINED;
    EXPECT_RESULT(rpma_conn_next_event(pair.a, &event), RPMA_E_NO_EVENT);
    cr_assert_eq(event, RPMA_CONN_UNDEFINED);
    EXPECT_OK(rpma_conn_disconnect(pair.b));
    expect_event(pair.a, RPMA_CONN_CLOSED);
    EXPECT_RESULT(rpma_conn_next_event(pair.a, &event), RPMA_E_NO_EVENT);
}

// RP-10.
RPMA_TEST(rpma_wait, next_request_without_one__says_so) {
    Peer peer;
    Listener listener(peer);
    set_nonblocking(listener.fd());
    rpma_conn_req* request = nullptr;
    EXPECT_RESULT(rpma_ep_next_conn_req(listener.it, nullptr, &request), RPMA_E_NO_EVENT);
    cr_assert_null(request);
    Conn conn;
    ask(conn, peer, listener.port);
    request = listener.request();
    EXPECT_RESULT(rpma_conn_req_delete(&request), 0);
    expect_event(conn, RPMA_CONN_REJECTED);
}

// RP-10: without O_NONBLOCK it waits.
RPMA_TEST(rpma_wait, next_request_and_next_event__wait) {
    Peer peer;
    Listener listener(peer);
    Conn a;
    Conn b;
    std::thread server([&] {
        rpma_conn_req* request = nullptr;
        NEED(rpma_ep_next_conn_req(listener.it, nullptr, &request));
        NEED(rpma_conn_req_connect(&request, nullptr, &b.it));
        rpma_conn_event event = RPMA_CONN_UNDEFINED;
        for (const rpma_conn_event wanted : {RPMA_CONN_ESTABLISHED, RPMA_CONN_CLOSED}) {
            NEED(rpma_conn_next_event(b, &event));
            need(event == wanted, "another event");
        }
        NEED(rpma_conn_disconnect(b));
    });
    ask(a, peer, listener.port);
    rpma_conn_event event = RPMA_CONN_UNDEFINED;
    EXPECT_OK(rpma_conn_next_event(a, &event));
    cr_assert_eq(event, RPMA_CONN_ESTABLISHED);
    EXPECT_OK(rpma_conn_disconnect(a));
    EXPECT_OK(rpma_conn_next_event(a, &event));
    cr_assert_eq(event, RPMA_CONN_CLOSED);
    server.join();
}

// ---- RP-11: private data -----------------------------------------------------

// RP-11: nothing is added and nothing cut, but for the zeros behind it.
RPMA_TEST(rpma_private_data, of_both_sides__arrives_to_the_byte) {
    Peer peer;
    Listener listener(peer);
    for (const std::size_t size : {1U, 21U, 56U}) {
        const std::string question = some_bytes(size);
        const std::string reply = some_bytes(size == 56 ? 196 : size + 2);
        Conn a;
        Conn b;
        ask(a, peer, listener.port, nullptr, question);
        rpma_conn_req* request = listener.request();
        rpma_conn_private_data data{};
        EXPECT_OK(rpma_conn_req_get_private_data(request, &data));
        expect_data(data, question);
        answer(b, request, reply);
        expect_event(a, RPMA_CONN_ESTABLISHED);
        expect_event(b, RPMA_CONN_ESTABLISHED);
        expect_data(data_of(a), reply);
        // It moved from the request to the connection, and lives as long as that.
        cr_assert_eq(data_of(b).ptr, data.ptr);
        expect_data(data_of(b), question);
        EXPECT_OK(rpma_conn_disconnect(a));
        expect_event(b, RPMA_CONN_CLOSED);
        expect_data(data_of(a), reply);
        expect_data(data_of(b), question);
    }
}

// RP-11.
RPMA_TEST(rpma_private_data, of_nobody__is_none_or_zeros) {
    Pair pair;
    for (const Conn* conn : {&pair.a, &pair.b}) {
        const rpma_conn_private_data data = data_of(*conn);
        if (data.len > 0) {
            expect_data(data, {});
        } else {
            cr_assert_null(data.ptr);
        }
    }
}

// RP-11, RP-2: more than a request carries is refused, and the request gone.
RPMA_TEST(rpma_private_data, of_57_bytes_in_a_request__is_refused) {
    Peer peer;
    Listener listener(peer);
    std::string text = some_bytes(57);
    rpma_conn_private_data data{text.data(), 57};
    rpma_conn_req* request = request_to(peer, listener.port);
    rpma_conn* conn = nullptr;
    EXPECT_RESULT(rpma_conn_req_connect(&request, &data, &conn), RPMA_E_PROVIDER);
    cr_assert_null(request);
    cr_assert_null(conn);
}

// ---- RP-12: taking things down -------------------------------------------------

// RP-12.
RPMA_TEST(rpma_delete, of_a_connection__leaves_no_descriptor) {
    Peer peer;
    Listener listener(peer);
    std::size_t before = 0;
    for (int round = 0; round < 4; ++round) {
        Config config;
        NEED(rpma_conn_cfg_set_rcq_size(config, 4));
        NEED(rpma_conn_cfg_set_compl_channel(config, round % 2 == 1));
        Conn a;
        Conn b;
        establish(a, b, peer, listener, config, config);
        EXPECT_OK(rpma_conn_disconnect(a));
        expect_event(b, RPMA_CONN_CLOSED);
        EXPECT_OK(rpma_conn_delete(&b.it));
        expect_event(a, RPMA_CONN_CLOSED);
        EXPECT_OK(rpma_conn_delete(&a.it));
        cr_assert_null(a.it);
        cr_assert_null(b.it);
        EXPECT_OK(rpma_conn_delete(&a.it));
        // What is made once for all of them is there after the first round.
        if (round == 1) {
            before = open_descriptors();
        }
    }
    cr_assert_leq(open_descriptors(), before);
}

// RP-12.
RPMA_TEST(rpma_delete, of_a_peer_with_a_region__is_refused_and_the_last_one_ends_it) {
    ibv_context* context = nullptr;
    alignas(4096) static std::array<char, 4096> memory;
    NEED(rpma_utils_get_ibv_context(place().address, RPMA_UTIL_IBV_CONTEXT_LOCAL, &context));
    std::size_t before = 0;
    for (int round = 0; round < 3; ++round) {
        rpma_peer* peer = nullptr;
        rpma_mr_local* mr = nullptr;
        rpma_ep* ep = nullptr;
        NEED(rpma_peer_new(context, &peer));
        NEED(rpma_mr_reg(peer, memory.data(), memory.size(), RPMA_MR_USAGE_WRITE_SRC, &mr));
        NEED(rpma_ep_listen(peer, place().address, "0", &ep));
        EXPECT_RESULT(rpma_peer_delete(&peer), RPMA_E_PROVIDER);
        cr_assert_null(peer, "it is NULL after a failure as well");
        EXPECT_OK(rpma_mr_dereg(&mr));
        cr_assert_null(mr);
        EXPECT_OK(rpma_ep_shutdown(&ep));
        // What is made once for all of them is there after the first round.
        if (round == 0) {
            before = open_descriptors();
        }
    }
    cr_assert_eq(open_descriptors(), before, "the domains are gone");
}

// RP-12: nothing to delete is no error.
RPMA_TEST(rpma_delete, of_nothing__is_no_error) {
    rpma_conn* conn = nullptr;
    rpma_conn_req* request = nullptr;
    rpma_ep* ep = nullptr;
    rpma_peer* peer = nullptr;
    rpma_srq* srq = nullptr;
    rpma_mr_local* mr = nullptr;
    rpma_mr_remote* remote = nullptr;
    EXPECT_OK(rpma_conn_delete(&conn));
    EXPECT_OK(rpma_conn_req_delete(&request));
    EXPECT_OK(rpma_ep_shutdown(&ep));
    EXPECT_OK(rpma_peer_delete(&peer));
    EXPECT_OK(rpma_srq_delete(&srq));
    EXPECT_OK(rpma_mr_dereg(&mr));
    EXPECT_OK(rpma_mr_remote_delete(&remote));
    EXPECT_INVAL(rpma_conn_delete(nullptr));
    EXPECT_INVAL(rpma_conn_req_delete(nullptr));
    EXPECT_INVAL(rpma_ep_shutdown(nullptr));
    EXPECT_INVAL(rpma_peer_delete(nullptr));
    EXPECT_INVAL(rpma_srq_delete(nullptr));
    EXPECT_INVAL(rpma_mr_dereg(nullptr));
    EXPECT_INVAL(rpma_mr_remote_delete(nullptr));
}

// RP-12: with work posted and unfinished.
RPMA_TEST(rpma_delete, with_receives_posted__leaves_the_memory_alone) {
    Pair pair;
    for (std::uintptr_t i = 0; i < 8; ++i) {
        EXPECT_OK(rpma_recv(pair.b, pair.theirs.mr, i * 64, 64, context_of(i)));
    }
    EXPECT_OK(rpma_conn_delete(&pair.b.it));
    expect_event(pair.a, RPMA_CONN_CLOSED);
    std::memset(pair.theirs.bytes, 'x', pair.theirs.size);
    if (rpma_send(pair.a, pair.mine.mr, 0, 64, RPMA_F_COMPLETION_ALWAYS, nullptr) == 0) {
        EXPECT_OK(rpma_conn_disconnect(pair.a));
        cr_assert_neq(next_of(pair.a.cq()).status, IBV_WC_SUCCESS);
    }
    cr_assert_eq(pair.theirs.bytes[0], 'x');
}
