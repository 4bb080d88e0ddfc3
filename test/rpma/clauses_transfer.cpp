// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Reads, writes, messages and flushes: what completes, and how.
#include "suite.h"

#include <arpa/inet.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <thread>

using namespace dat::test;

namespace {

constexpr int kAlways = RPMA_F_COMPLETION_ALWAYS;
constexpr int kOnError = RPMA_F_COMPLETION_ON_ERROR;

// The remote side writes to persistent memory without its processor.
void apply_direct_write(const Conn& conn) {
    rpma_peer_cfg* config = nullptr;
    NEED(rpma_peer_cfg_new(&config));
    NEED(rpma_peer_cfg_set_direct_write_to_pmem(config, true));
    NEED(rpma_conn_apply_remote_peer_cfg(conn, config));
    NEED(rpma_peer_cfg_delete(&config));
}

} // namespace

// ---- RP-9: what a disconnect does to work ------------------------------------------

// RP-9.
RPMA_TEST(rpma_flushed, by_the_own_disconnect__not_by_the_event) {
    Pair pair;
    for (std::uintptr_t i = 0; i < 3; ++i) {
        EXPECT_OK(rpma_recv(pair.b, pair.theirs.mr, i * 16, 16, context_of(i)));
    }
    EXPECT_OK(rpma_conn_disconnect(pair.a));
    expect_event(pair.b, RPMA_CONN_CLOSED);
    cr_assert(is_empty(pair.b.cq()), "CLOSED flushes nothing");
    cr_assert_not(readable(fd_of(pair.b.cq()), kBriefly));
    EXPECT_OK(rpma_conn_disconnect(pair.b));
    for (std::uintptr_t i = 0; i < 3; ++i) {
        expect_error(pair.b.cq(), IBV_WC_WR_FLUSH_ERR, i);
    }
    cr_assert(is_empty(pair.b.cq()));
}

// RP-9: what is posted between the event and the own disconnect completes flushed.
RPMA_TEST(rpma_flushed, a_write_after_closed__completes_with_the_disconnect) {
    Pair pair;
    EXPECT_OK(rpma_recv(pair.b, pair.theirs.mr, 0, 16, context_of(1)));
    EXPECT_OK(rpma_conn_disconnect(pair.a));
    expect_event(pair.b, RPMA_CONN_CLOSED);
    EXPECT_OK(
        rpma_write(pair.b, pair.mine.remote, 0, pair.theirs.mr, 64, 16, kAlways, context_of(2)));
    EXPECT_OK(rpma_conn_disconnect(pair.b));
    bool seen[3] = {};
    for (int i = 0; i < 2; ++i) {
        const ibv_wc wc = next_of(pair.b.cq());
        cr_assert_neq(wc.status, IBV_WC_SUCCESS);
        cr_assert(wc.wr_id == 1 || wc.wr_id == 2);
        cr_assert_not(seen[wc.wr_id]);
        seen[wc.wr_id] = true;
    }
    cr_assert(is_empty(pair.b.cq()));
}

// RP-9: the initiator's own work is flushed by its disconnect.
RPMA_TEST(rpma_flushed, receives_of_the_initiator__complete_at_once) {
    Pair pair;
    EXPECT_OK(rpma_recv(pair.a, pair.mine.mr, 0, 16, context_of(7)));
    EXPECT_OK(rpma_conn_disconnect(pair.a));
    const ibv_wc wc = expect_error(pair.a.cq(), IBV_WC_WR_FLUSH_ERR, 7);
    cr_assert_eq(wc.qp_num, pair.a.qp_num());
}

// ---- RP-17: flags --------------------------------------------------------------------

// RP-17.
RPMA_TEST(rpma_flags, of_none__are_refused) {
    Pair pair;
    Region& m = pair.mine;
    Region& t = pair.theirs;
    const char word[8] = {};
    EXPECT_INVAL(rpma_read(pair.a, m.mr, 0, t.remote, 0, 8, 0, nullptr));
    EXPECT_INVAL(rpma_write(pair.a, t.remote, 0, m.mr, 0, 8, 0, nullptr));
    EXPECT_INVAL(rpma_write_with_imm(pair.a, t.remote, 0, m.mr, 0, 8, 0, 1, nullptr));
    EXPECT_INVAL(rpma_atomic_write(pair.a, t.remote, 0, word, 0, nullptr));
    EXPECT_INVAL(rpma_flush(pair.a, t.remote, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, 0, nullptr));
    EXPECT_INVAL(rpma_send(pair.a, m.mr, 0, 8, 0, nullptr));
    EXPECT_INVAL(rpma_send_with_imm(pair.a, m.mr, 0, 8, 0, 1, nullptr));
    cr_assert(is_empty(pair.a.cq()));
}

// RP-17: 1000 that nobody waits for go through a queue of 8; the one behind them that
// completes says that all are done.
RPMA_TEST(rpma_flags, a_thousand_unsignalled_writes__fit_a_queue_of_eight) {
    Config config;
    NEED(rpma_conn_cfg_set_sq_size(config, 8));
    Pair pair(config, nullptr, 8192);
    for (std::uint32_t i = 0; i < 1000; ++i) {
        std::memcpy(pair.mine.bytes + i * 8, &i, sizeof(i));
        EXPECT_OK(rpma_write(pair.a, pair.theirs.remote, i * 8, pair.mine.mr, i * 8, 8, kOnError,
                             context_of(i)));
    }
    EXPECT_OK(
        rpma_read(pair.a, pair.mine.mr, 8184, pair.theirs.remote, 0, 8, kAlways, context_of(5000)));
    expect_wc(pair.a.cq(), IBV_WC_RDMA_READ, 5000);
    cr_assert(is_empty(pair.a.cq()));
    cr_assert_eq(std::memcmp(pair.mine.bytes, pair.theirs.bytes, 8000), 0);
}

// RP-17: of what fails a completion comes whatever the flags.
RPMA_TEST(rpma_flags, unsignalled_and_in_error__completes) {
    Pair pair;
    EXPECT_OK(rpma_write(pair.a, pair.theirs.remote, 1 << 20, pair.mine.mr, 0, 8, kOnError,
                         context_of(3)));
    const ibv_wc wc = next_of(pair.a.cq());
    cr_assert_neq(wc.status, IBV_WC_SUCCESS);
    cr_assert_eq(wc.wr_id, 3);
}

// RP-17: unsignalled sends and reads leave no completion either.
RPMA_TEST(rpma_flags, unsignalled_sends_and_reads__complete_in_silence) {
    Pair pair;
    EXPECT_OK(rpma_recv(pair.b, pair.theirs.mr, 0, 16, context_of(1)));
    EXPECT_OK(rpma_send(pair.a, pair.mine.mr, 0, 16, kOnError, context_of(2)));
    EXPECT_OK(
        rpma_read(pair.a, pair.mine.mr, 32, pair.theirs.remote, 32, 8, kOnError, context_of(3)));
    EXPECT_OK(rpma_flush(pair.a, pair.theirs.remote, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, kAlways,
                         context_of(4)));
    expect_wc(pair.a.cq(), IBV_WC_RDMA_READ, 4);
    expect_wc(pair.b.cq(), IBV_WC_RECV, 1);
    cr_assert(is_empty(pair.a.cq()));
}

// ---- RP-18: nothing at all -----------------------------------------------------------

// RP-18.
RPMA_TEST(rpma_nothing, null_reads_writes_and_sends__complete) {
    Pair pair;
    rpma_cq* const cq = pair.a.cq();
    EXPECT_OK(rpma_read(pair.a, nullptr, 0, nullptr, 0, 0, kAlways, context_of(1)));
    expect_wc(cq, IBV_WC_RDMA_READ, 1);
    EXPECT_OK(rpma_write(pair.a, nullptr, 0, nullptr, 0, 0, kAlways, context_of(2)));
    expect_wc(cq, IBV_WC_RDMA_WRITE, 2);
    EXPECT_OK(rpma_recv(pair.b, nullptr, 0, 0, context_of(3)));
    EXPECT_OK(rpma_send(pair.a, nullptr, 0, 0, kAlways, context_of(4)));
    expect_wc(cq, IBV_WC_SEND, 4);
    cr_assert_eq(expect_wc(pair.b.cq(), IBV_WC_RECV, 3).byte_len, 0);
}

// RP-18.
RPMA_TEST(rpma_nothing, zero_length__completes) {
    Pair pair;
    rpma_cq* const cq = pair.a.cq();
    EXPECT_OK(rpma_read(pair.a, pair.mine.mr, 0, pair.theirs.remote, 0, 0, kAlways, context_of(1)));
    expect_wc(cq, IBV_WC_RDMA_READ, 1);
    EXPECT_OK(
        rpma_write(pair.a, pair.theirs.remote, 0, pair.mine.mr, 0, 0, kAlways, context_of(2)));
    expect_wc(cq, IBV_WC_RDMA_WRITE, 2);
    EXPECT_OK(rpma_recv(pair.b, pair.theirs.mr, 0, 0, context_of(3)));
    EXPECT_OK(rpma_send(pair.a, pair.mine.mr, 0, 0, kAlways, context_of(4)));
    expect_wc(cq, IBV_WC_SEND, 4);
    cr_assert_eq(expect_wc(pair.b.cq(), IBV_WC_RECV, 3).byte_len, 0);
}

// RP-18: half of nothing is refused.
RPMA_TEST(rpma_nothing, null_with_an_offset_or_a_length__is_refused) {
    Pair pair;
    Region& m = pair.mine;
    Region& t = pair.theirs;
    EXPECT_INVAL(rpma_read(pair.a, nullptr, 0, nullptr, 0, 1, kAlways, nullptr));
    EXPECT_INVAL(rpma_read(pair.a, nullptr, 1, nullptr, 0, 0, kAlways, nullptr));
    EXPECT_INVAL(rpma_read(pair.a, nullptr, 0, t.remote, 0, 0, kAlways, nullptr));
    EXPECT_INVAL(rpma_read(pair.a, m.mr, 0, nullptr, 0, 0, kAlways, nullptr));
    EXPECT_INVAL(rpma_write(pair.a, nullptr, 0, nullptr, 0, 1, kAlways, nullptr));
    EXPECT_INVAL(rpma_write(pair.a, nullptr, 0, nullptr, 1, 0, kAlways, nullptr));
    EXPECT_INVAL(rpma_write(pair.a, t.remote, 0, nullptr, 0, 0, kAlways, nullptr));
    EXPECT_INVAL(rpma_write(pair.a, nullptr, 0, m.mr, 0, 0, kAlways, nullptr));
    EXPECT_INVAL(rpma_write_with_imm(pair.a, nullptr, 0, m.mr, 0, 0, kAlways, 1, nullptr));
    EXPECT_INVAL(rpma_send(pair.a, nullptr, 0, 1, kAlways, nullptr));
    EXPECT_INVAL(rpma_send(pair.a, nullptr, 1, 0, kAlways, nullptr));
    EXPECT_INVAL(rpma_send_with_imm(pair.a, nullptr, 1, 0, kAlways, 1, nullptr));
    EXPECT_INVAL(rpma_recv(pair.a, nullptr, 0, 1, nullptr));
    EXPECT_INVAL(rpma_recv(pair.a, nullptr, 1, 0, nullptr));
    cr_assert(is_empty(pair.a.cq()));
}

// ---- RP-19: flush --------------------------------------------------------------------

// RP-19: `len` plays no part.
RPMA_TEST(rpma_flush, of_visibility__completes_as_a_read_of_8_bytes) {
    Pair pair;
    for (const std::size_t length : {std::size_t{0}, std::size_t{8}, std::size_t{4096}}) {
        std::memset(pair.mine.bytes, static_cast<int>(length % 100 + 1), 256);
        EXPECT_OK(
            rpma_write(pair.a, pair.theirs.remote, 512, pair.mine.mr, 0, 256, kOnError, nullptr));
        EXPECT_OK(rpma_flush(pair.a, pair.theirs.remote, 512, length, RPMA_FLUSH_TYPE_VISIBILITY,
                             kAlways, context_of(length + 1)));
        const ibv_wc wc = expect_wc(pair.a.cq(), IBV_WC_RDMA_READ, length + 1);
        cr_assert_eq(wc.byte_len, 8);
        cr_assert_eq(wc.qp_num, pair.a.qp_num());
        cr_assert_eq(std::memcmp(pair.theirs.bytes + 512, pair.mine.bytes, 256), 0);
    }
}

// RP-19.
RPMA_TEST(rpma_flush, of_what_the_region_does_not_offer__is_not_supported) {
    Pair pair;
    Region plain(pair.peer, 4096, RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC);
    Region visible(pair.peer, 4096, RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY);
    EXPECT_RESULT(
        rpma_flush(pair.a, plain.remote, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, kAlways, nullptr),
        RPMA_E_NOSUPP);
    EXPECT_RESULT(
        rpma_flush(pair.a, visible.remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT, kAlways, nullptr),
        RPMA_E_NOSUPP);
    apply_direct_write(pair.a);
    EXPECT_RESULT(
        rpma_flush(pair.a, visible.remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT, kAlways, nullptr),
        RPMA_E_NOSUPP);
    EXPECT_OK(rpma_flush(pair.a, visible.remote, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, kAlways,
                         context_of(1)));
    expect_wc(pair.a.cq(), IBV_WC_RDMA_READ, 1);
    cr_assert(is_empty(pair.a.cq()));
}

// RP-19: the configuration of the peer has to be applied, and to say that.
RPMA_TEST(rpma_flush, persistent_without_the_peers_configuration__is_not_supported) {
    Pair pair;
    Region visible(pair.peer);
    EXPECT_RESULT(
        rpma_flush(pair.a, visible.remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT, kAlways, nullptr),
        RPMA_E_NOSUPP);
    rpma_peer_cfg* config = nullptr;
    NEED(rpma_peer_cfg_new(&config));
    EXPECT_OK(rpma_conn_apply_remote_peer_cfg(pair.a, config));
    NEED(rpma_peer_cfg_delete(&config));
    EXPECT_RESULT(
        rpma_flush(pair.a, visible.remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT, kAlways, nullptr),
        RPMA_E_NOSUPP);
    cr_assert(is_empty(pair.a.cq()));
}

// ---- RP-20: atomic write ----------------------------------------------------------------

// RP-20.
RPMA_TEST(rpma_atomic, off_its_alignment__is_refused) {
    Pair pair;
    const char word[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (const std::size_t offset : {1U, 4U, 7U, 12U}) {
        EXPECT_INVAL(rpma_atomic_write(pair.a, pair.theirs.remote, offset, word, kAlways, nullptr));
    }
    cr_assert(is_empty(pair.a.cq()));
    cr_assert_eq(pair.theirs.bytes[1], 0);
}

// RP-20: the source may be changed at once, and its completion is one of a write.
RPMA_TEST(rpma_atomic, write__takes_its_bytes_with_it) {
    Pair pair;
    char word[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    EXPECT_OK(rpma_atomic_write(pair.a, pair.theirs.remote, 16, word, kAlways, context_of(6)));
    std::memset(word, 9, sizeof(word));
    expect_wc(pair.a.cq(), IBV_WC_RDMA_WRITE, 6);
    EXPECT_OK(rpma_flush(pair.a, pair.theirs.remote, 16, 8, RPMA_FLUSH_TYPE_VISIBILITY, kAlways,
                         context_of(7)));
    expect_wc(pair.a.cq(), IBV_WC_RDMA_READ, 7);
    const char wanted[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    cr_assert_eq(std::memcmp(pair.theirs.bytes + 16, wanted, 8), 0);
}

// RP-20: who looks at the word at any time sees one value or the other, never parts of both;
// and they come in order.
RPMA_TEST(rpma_atomic, writes_seen_from_a_thread__are_never_torn) {
    constexpr std::uint64_t kWrites = 4000;
    Config config;
    NEED(rpma_conn_cfg_set_sq_size(config, 16));
    Pair pair(config);
    auto& word = *reinterpret_cast<std::atomic<std::uint64_t>*>(pair.theirs.bytes + 64);
    std::atomic<bool> over{false};
    std::atomic<bool> good{true};
    std::thread watcher([&] {
        std::uint32_t last = 0;
        while (!over) {
            const std::uint64_t value = word.load(std::memory_order_acquire);
            const auto high = static_cast<std::uint32_t>(value >> 32);
            const auto low = static_cast<std::uint32_t>(value);
            if (low != high || low < last) {
                good = false;
            }
            last = low;
        }
    });
    for (std::uint64_t i = 1; i <= kWrites; ++i) {
        const std::uint64_t value = i << 32 | i;
        char bytes[8];
        std::memcpy(bytes, &value, sizeof(value));
        EXPECT_OK(rpma_atomic_write(pair.a, pair.theirs.remote, 64, bytes,
                                    i % 8 ? kOnError : kAlways, context_of(i)));
        if (i % 8 == 0) {
            expect_wc(pair.a.cq(), IBV_WC_RDMA_WRITE, i);
        }
    }
    EXPECT_OK(rpma_flush(pair.a, pair.theirs.remote, 64, 8, RPMA_FLUSH_TYPE_VISIBILITY, kAlways,
                         context_of(1)));
    expect_wc(pair.a.cq(), IBV_WC_RDMA_READ, 1);
    over = true;
    watcher.join();
    cr_assert(good, "a torn value was seen");
    cr_assert_eq(word.load(), kWrites << 32 | kWrites);
}

// RP-20: it is carried out behind a read that was posted before it.
RPMA_TEST(rpma_atomic, behind_a_read__does_not_overtake_it) {
    Pair pair(nullptr, nullptr, 1 << 20);
    for (int round = 0; round < 8; ++round) {
        std::memset(pair.theirs.bytes, 0, pair.theirs.size);
        std::memset(pair.mine.bytes, 1, pair.mine.size);
        const char word[8] = {5, 5, 5, 5, 5, 5, 5, 5};
        EXPECT_OK(rpma_read(pair.a, pair.mine.mr, 0, pair.theirs.remote, 0, pair.mine.size,
                            kOnError, nullptr));
        EXPECT_OK(rpma_atomic_write(pair.a, pair.theirs.remote, pair.theirs.size - 8, word, kAlways,
                                    context_of(1)));
        expect_wc(pair.a.cq(), IBV_WC_RDMA_WRITE, 1);
        cr_assert_eq(pair.mine.bytes[pair.mine.size - 8], 0, "the read saw the later write");
    }
}

// ---- RP-21: what the peer does not allow, or is not ready for -----------------------------

// RP-21.
RPMA_TEST(rpma_receiver, not_ready__is_waited_for) {
    Pair pair;
    std::memset(pair.mine.bytes, 'm', 16);
    EXPECT_OK(rpma_send(pair.a, pair.mine.mr, 0, 16, kAlways, context_of(1)));
    cr_assert_not(readable(fd_of(pair.b.cq()), kBriefly));
    EXPECT_OK(rpma_recv(pair.b, pair.theirs.mr, 0, 16, context_of(2)));
    const ibv_wc wc = expect_wc(pair.b.cq(), IBV_WC_RECV, 2);
    cr_assert_eq(wc.byte_len, 16);
    expect_wc(pair.a.cq(), IBV_WC_SEND, 1);
    cr_assert_eq(pair.theirs.bytes[15], 'm');
    cr_assert(pair.a.quiet());
    cr_assert(pair.b.quiet());
}

// RP-21.
RPMA_TEST(rpma_receiver, out_of_bounds__is_an_access_error_and_no_event) {
    Pair pair;
    EXPECT_OK(rpma_write(pair.a, pair.theirs.remote, pair.theirs.size - 8, pair.mine.mr, 0, 64,
                         kAlways, context_of(1)));
    const ibv_wc wc = expect_error(pair.a.cq(), IBV_WC_REM_ACCESS_ERR, 1);
    cr_assert_eq(wc.qp_num, pair.a.qp_num());
    for (std::uintptr_t i = 2; i < 5; ++i) {
        EXPECT_OK(
            rpma_write(pair.a, pair.theirs.remote, 0, pair.mine.mr, 0, 8, kAlways, context_of(i)));
        expect_error(pair.a.cq(), IBV_WC_WR_FLUSH_ERR, i);
    }
    cr_assert(pair.a.quiet(), "an event of the connection came");
    cr_assert_eq(pair.theirs.bytes[pair.theirs.size - 1], 0);
    EXPECT_OK(rpma_conn_disconnect(pair.a));
    expect_event(pair.b, RPMA_CONN_CLOSED);
    EXPECT_OK(rpma_conn_disconnect(pair.b));
    expect_event(pair.a, RPMA_CONN_CLOSED);
}

// RP-21: the same of a read, and of memory without that right.
RPMA_TEST(rpma_receiver, without_the_right__is_an_access_error) {
    for (const bool reads : {true, false}) {
        Pair pair;
        Region closed(pair.peer, 4096, reads ? RPMA_MR_USAGE_WRITE_DST : RPMA_MR_USAGE_READ_SRC);
        if (reads) {
            EXPECT_OK(
                rpma_read(pair.a, pair.mine.mr, 0, closed.remote, 0, 8, kAlways, context_of(1)));
        } else {
            EXPECT_OK(
                rpma_write(pair.a, closed.remote, 0, pair.mine.mr, 0, 8, kAlways, context_of(1)));
        }
        expect_error(pair.a.cq(), IBV_WC_REM_ACCESS_ERR, 1);
        cr_assert(pair.a.quiet());
    }
}

// RP-21: a descriptor comes from the peer, which may write anything there: an operation on it fails
// as any other that may not be, and nothing is touched but what is registered.
RPMA_TEST(rpma_receiver, of_a_descriptor_that_lies__is_an_access_error) {
    struct Lie {
        std::size_t at; // in the descriptor: 0 address, 8 size, 16 key, 20 usage
        std::uint8_t with;
    };
    for (const Lie& lie : {Lie{0, 0xf9},
                           {1, 0xff},
                           {3, 0x80},
                           {7, 0x7f},
                           {7, 0x80},
                           {16, 0xff},
                           {17, 0x5a},
                           {19, 0xff}}) {
        for (const bool reads : {true, false}) {
            Pair pair;
            std::vector<char> bytes = pair.theirs.descriptor();
            bytes[lie.at] = static_cast<char>(bytes[lie.at] ^ lie.with);
            bytes[8] = bytes[9] = '\x7f'; // a size that it has not
            rpma_mr_remote* remote = nullptr;
            EXPECT_OK(rpma_mr_remote_from_descriptor(bytes.data(), bytes.size(), &remote));
            std::memset(pair.mine.bytes, 7, pair.mine.size);
            EXPECT_OK(reads ? rpma_read(pair.a, pair.mine.mr, 0, remote, 0, pair.mine.size, kAlways,
                                        context_of(1))
                            : rpma_write(pair.a, remote, 0, pair.mine.mr, 0, pair.mine.size,
                                         kAlways, context_of(1)));
            expect_error(pair.a.cq(), IBV_WC_REM_ACCESS_ERR, 1);
            for (std::size_t i = 0; i < pair.theirs.size; ++i) {
                cr_assert(pair.theirs.bytes[i] == 0 && pair.mine.bytes[i] == 7);
            }
            EXPECT_OK(rpma_mr_remote_delete(&remote));
        }
    }
}

// RP-21, RP-22: a message longer than its receive.
RPMA_TEST(rpma_receiver, with_too_little_room__fails_at_both_sides) {
    Pair pair;
    EXPECT_OK(rpma_recv(pair.b, pair.theirs.mr, 0, 8, context_of(1)));
    EXPECT_OK(rpma_send(pair.a, pair.mine.mr, 0, 64, kAlways, context_of(2)));
    const ibv_wc wc = next_of(pair.b.cq());
    // rxe tells its programs of an error of the queue pair, and of an operation.
    cr_assert(wc.status == IBV_WC_LOC_LEN_ERR || wc.status == IBV_WC_LOC_QP_OP_ERR, "status %d",
              wc.status);
    cr_assert_eq(wc.wr_id, 1);
    const ibv_wc sent = next_of(pair.a.cq());
    cr_assert(sent.status == IBV_WC_REM_INV_REQ_ERR || sent.status == IBV_WC_REM_OP_ERR,
              "status %d", sent.status);
    cr_assert_eq(sent.wr_id, 2);
    cr_assert_eq(pair.theirs.bytes[8], 0);
}

// ---- RP-22 and the completion: what ibv_wc says ---------------------------------------------

// RP-22: reads and writes at offsets, of every size up to many pages.
RPMA_TEST(rpma_wc, of_reads_and_writes__move_the_bytes) {
    constexpr std::size_t kSize = 300'000;
    Pair pair(nullptr, nullptr, kSize);
    for (const std::size_t size : {std::size_t{1}, std::size_t{100}, std::size_t{4096},
                                   std::size_t{65'537}, std::size_t{250'001}}) {
        const std::size_t at = kSize - size;
        for (std::size_t i = 0; i < kSize; ++i) {
            pair.mine.bytes[i] = static_cast<char>(i * 31 + size);
        }
        EXPECT_OK(rpma_write(pair.a, pair.theirs.remote, at, pair.mine.mr, 3 * at / 4, size,
                             kAlways, context_of(size)));
        expect_wc(pair.a.cq(), IBV_WC_RDMA_WRITE, size);
        const std::string sent(pair.mine.bytes + 3 * at / 4, size);
        std::memset(pair.mine.bytes, 0, kSize);
        EXPECT_OK(rpma_read(pair.a, pair.mine.mr, at / 2, pair.theirs.remote, at, size, kAlways,
                            context_of(size + 1)));
        const ibv_wc wc = expect_wc(pair.a.cq(), IBV_WC_RDMA_READ, size + 1);
        cr_assert_eq(wc.byte_len, size);
        cr_assert_eq(std::memcmp(pair.mine.bytes + at / 2, sent.data(), size), 0);
    }
}

// RP-22: a context is any value, and need not be the only one of its kind.
RPMA_TEST(rpma_wc, context__comes_back_whatever_it_is) {
    Pair pair;
    for (const std::uintptr_t context : {std::uintptr_t{0}, UINTPTR_MAX, UINTPTR_MAX}) {
        EXPECT_OK(rpma_recv(pair.b, pair.theirs.mr, 0, 8, context_of(context)));
        EXPECT_OK(rpma_send(pair.a, pair.mine.mr, 0, 8, kAlways, context_of(context)));
        expect_wc(pair.a.cq(), IBV_WC_SEND, context);
        expect_wc(pair.b.cq(), IBV_WC_RECV, context);
    }
}

// RP-22: what comes with a message comes in network order.
RPMA_TEST(rpma_wc, immediate_data__arrives_in_network_order) {
    if (place().name == std::string("siw")) {
        // iWARP has no immediate data.
        Pair pair;
        EXPECT_RESULT(rpma_send_with_imm(pair.a, pair.mine.mr, 0, 8, kAlways, 7, nullptr),
                      RPMA_E_PROVIDER);
        return;
    }
    Pair pair;
    EXPECT_OK(rpma_recv(pair.b, pair.theirs.mr, 0, 16, context_of(1)));
    EXPECT_OK(rpma_send_with_imm(pair.a, pair.mine.mr, 0, 16, kAlways, 0x12345678, context_of(2)));
    expect_wc(pair.a.cq(), IBV_WC_SEND, 2);
    ibv_wc wc = expect_wc(pair.b.cq(), IBV_WC_RECV, 1);
    cr_assert(wc.wc_flags & IBV_WC_WITH_IMM);
    cr_assert_eq(wc.imm_data, htonl(0x12345678));
    cr_assert_eq(wc.byte_len, 16);
    EXPECT_OK(rpma_recv(pair.b, pair.theirs.mr, 64, 16, context_of(3)));
    std::memset(pair.mine.bytes, 'i', 32);
    EXPECT_OK(rpma_write_with_imm(pair.a, pair.theirs.remote, 512, pair.mine.mr, 0, 32, kAlways,
                                  0x9ABCDEF0, context_of(4)));
    expect_wc(pair.a.cq(), IBV_WC_RDMA_WRITE, 4);
    wc = expect_wc(pair.b.cq(), IBV_WC_RECV_RDMA_WITH_IMM, 3);
    cr_assert(wc.wc_flags & IBV_WC_WITH_IMM);
    cr_assert_eq(wc.imm_data, htonl(0x9ABCDEF0));
    cr_assert_eq(pair.theirs.bytes[512 + 31], 'i');
    EXPECT_OK(rpma_recv(pair.b, pair.theirs.mr, 64, 16, context_of(5)));
    EXPECT_OK(rpma_send(pair.a, pair.mine.mr, 0, 4, kAlways, context_of(6)));
    expect_wc(pair.a.cq(), IBV_WC_SEND, 6);
    wc = expect_wc(pair.b.cq(), IBV_WC_RECV, 5);
    cr_assert_not(wc.wc_flags & IBV_WC_WITH_IMM);
}

// RP-22: programs with shared receives tell their connections apart by this number.
RPMA_TEST(rpma_wc, qp_num__tells_connections_of_shared_receives_apart) {
    Peer peer;
    Region mine(peer);
    Region theirs(peer);
    Listener listener(peer);
    SharedReceives shared(peer);
    Config config;
    NEED(rpma_conn_cfg_set_srq(config, shared.it));
    Conn a[3];
    Conn b[3];
    for (int i = 0; i < 3; ++i) {
        ask(a[i], peer, listener.port);
        answer(b[i], listener.request(config));
        expect_event(a[i], RPMA_CONN_ESTABLISHED);
        expect_event(b[i], RPMA_CONN_ESTABLISHED);
        cr_assert(i == 0 || b[i].qp_num() != b[i - 1].qp_num());
    }
    for (std::uintptr_t round = 0; round < 12; ++round) {
        EXPECT_OK(rpma_srq_recv(shared.it, theirs.mr, round * 8, 8, context_of(round)));
    }
    for (std::uintptr_t round = 0; round < 12; ++round) {
        const Conn& from = a[round % 3];
        EXPECT_OK(rpma_send(from, mine.mr, 0, 8, kAlways, context_of(50 + round)));
        expect_wc(from.cq(), IBV_WC_SEND, 50 + round);
        const ibv_wc wc = expect_wc(shared.rcq(), IBV_WC_RECV, round);
        cr_assert_eq(wc.qp_num, b[round % 3].qp_num());
    }
    cr_assert_null(b[0].rcq());
}

// RP-22: without a queue of its own they complete where their connection does.
RPMA_TEST(rpma_wc, of_shared_receives_without_a_queue__is_the_connections) {
    Peer peer;
    Region mine(peer);
    Region theirs(peer);
    Listener listener(peer);
    SharedReceives shared(peer, 20, 0);
    Config config;
    NEED(rpma_conn_cfg_set_srq(config, shared.it));
    NEED(rpma_conn_cfg_set_rcq_size(config, 10));
    Conn a;
    Conn b;
    ask(a, peer, listener.port);
    answer(b, listener.request(config));
    expect_event(a, RPMA_CONN_ESTABLISHED);
    expect_event(b, RPMA_CONN_ESTABLISHED);
    EXPECT_OK(rpma_srq_recv(shared.it, theirs.mr, 0, 8, context_of(1)));
    EXPECT_OK(rpma_send(a, mine.mr, 0, 8, kAlways, context_of(2)));
    expect_wc(a.cq(), IBV_WC_SEND, 2);
    const ibv_wc wc = expect_wc(b.rcq(), IBV_WC_RECV, 1);
    cr_assert_eq(wc.qp_num, b.qp_num());
    cr_assert(is_empty(b.cq()));
}

// RP-22: a receive that was posted to a request, before the connection is there.
RPMA_TEST(rpma_wc, of_a_receive_posted_to_the_request__is_the_connections) {
    Peer peer;
    Region mine(peer);
    Region theirs(peer);
    Listener listener(peer);
    Conn a;
    Conn b;
    rpma_conn_req* request = request_to(peer, listener.port);
    EXPECT_OK(rpma_conn_req_recv(request, mine.mr, 0, 8, context_of(1)));
    answer(a, request);
    request = listener.request();
    EXPECT_OK(rpma_conn_req_recv(request, theirs.mr, 0, 8, context_of(2)));
    answer(b, request);
    expect_event(a, RPMA_CONN_ESTABLISHED);
    expect_event(b, RPMA_CONN_ESTABLISHED);
    EXPECT_OK(rpma_send(a, mine.mr, 64, 8, kAlways, context_of(3)));
    expect_wc(a.cq(), IBV_WC_SEND, 3);
    expect_wc(b.cq(), IBV_WC_RECV, 2);
    EXPECT_OK(rpma_send(b, theirs.mr, 64, 8, kAlways, context_of(4)));
    expect_wc(b.cq(), IBV_WC_SEND, 4);
    expect_wc(a.cq(), IBV_WC_RECV, 1);
}
