// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See queue.h; and rpma_cq_*(), rpma_conn_wait().
#include "rpma-shim/queue.h"

#include "base/attempt.h"
#include "rpma-shim/conn.h"
#include "rpma-shim/fast.h"
#include "rpma-shim/guard.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <rdma/fi_errno.h>
#include <utility>

using namespace dat::rpma;

namespace {

ibv_wc_status status_of(fi_dat_dto_status status) {
    switch (status) {
    case FI_DAT_DTO_SUCCESS:
        return IBV_WC_SUCCESS;
    case FI_DAT_DTO_FLUSHED:
        return IBV_WC_WR_FLUSH_ERR;
    case FI_DAT_DTO_LOCAL_LENGTH:
        return IBV_WC_LOC_LEN_ERR;
    case FI_DAT_DTO_LOCAL_EP:
        return IBV_WC_LOC_QP_OP_ERR;
    case FI_DAT_DTO_LOCAL_PROTECTION:
        return IBV_WC_LOC_PROT_ERR;
    case FI_DAT_DTO_BAD_RESPONSE:
        return IBV_WC_BAD_RESP_ERR;
    case FI_DAT_DTO_REMOTE_ACCESS:
        return IBV_WC_REM_ACCESS_ERR;
    case FI_DAT_DTO_REMOTE_RESPONDER:
        return IBV_WC_REM_INV_REQ_ERR;
    case FI_DAT_DTO_TRANSPORT:
        return IBV_WC_RETRY_EXC_ERR;
    case FI_DAT_DTO_RECEIVER_NOT_READY:
        return IBV_WC_RNR_RETRY_EXC_ERR;
    case FI_DAT_DTO_RMR_OPERATION_FAILED:
        return IBV_WC_MW_BIND_ERR;
    case FI_DAT_DTO_PARTIAL_PACKET:
        break;
    }
    return IBV_WC_GENERAL_ERR;
}

// The usual comes first.
[[gnu::always_inline]] inline ibv_wc_opcode opcode_of(std::uint64_t flags) {
    if ((flags & FI_WRITE) != 0) {
        return IBV_WC_RDMA_WRITE;
    }
    if ((flags & FI_RECV) != 0) {
        return IBV_WC_RECV;
    }
    if ((flags & FI_READ) != 0) {
        return IBV_WC_RDMA_READ;
    }
    return (flags & FI_REMOTE_WRITE) != 0 ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_SEND;
}

// `number`: of the connection; 0: it is the context of its endpoint.
[[gnu::always_inline]] inline void fill(ibv_wc& wc, const fast::Done& done, std::uint32_t number) {
    wc = {};
    wc.wr_id = reinterpret_cast<std::uintptr_t>(done.context);
    wc.opcode = opcode_of(done.flags);
    wc.qp_num = number != 0
                    ? number
                    : static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(done.buffer));
    if (done.status != FI_DAT_DTO_SUCCESS) [[unlikely]] {
        wc.status = status_of(done.status);
        return;
    }
    wc.byte_len = static_cast<std::uint32_t>(done.length);
    if ((done.flags & FI_REMOTE_CQ_DATA) != 0) {
        wc.imm_data = htonl(static_cast<std::uint32_t>(done.data));
        wc.wc_flags = IBV_WC_WITH_IMM;
    }
}

} // namespace

int Completions::settle() const {
    channel.lower();
    int rc = 0;
    for (rpma_cq* const queue : queues) {
        const int told = queue ? queue->tell_of_more() : 0;
        rc = told ? told : rc;
    }
    if (rc) {
        channel.raise();
    }
    return rc;
}

// What has been fetched already the queue below does not know of.
int rpma_cq::tell_of_more() {
    return any_ready_.load(std::memory_order_acquire)
               ? -FI_EAGAIN
               : ops->tell(&cq.get()->fid, completions.channel.fd());
}

int rpma_cq::open(rpma_peer& peer, std::uint32_t size) {
    fi_cq_attr attr{};
    attr.size = size;
    attr.format = FI_CQ_FORMAT_DATA;
    attr.wait_obj = FI_WAIT_NONE;
    int rc = fi_cq_open(peer.domain.get(), &attr, cq.out(), nullptr);
    rc = rc ? rc
            : fi_open_ops(&cq.get()->fid, FI_DAT_QUEUE_OPS, 0, reinterpret_cast<void**>(&ops),
                          nullptr);
    if (rc == 0) {
        (completions.queues[0] ? completions.queues[1] : completions.queues[0]) = this;
    }
    return rc;
}

bool rpma_cq::withhold(const ibv_wc& wc) {
    if (!conn || !conn->withholds()) {
        return false;
    }
    const std::lock_guard lock(mutex_);
    if (!conn->withholds() || !dat::base::attempt([&] { late_.push_back(wc); })) {
        return false;
    }
    withheld_ = true;
    return true;
}

// Takes out what is withheld; how many are left.
int rpma_cq::sift(ibv_wc* wc, int count) {
    ibv_wc* const end = std::remove_if(wc, wc + count, [&](const ibv_wc& each) {
        return each.status == IBV_WC_WR_FLUSH_ERR && withhold(each);
    });
    return static_cast<int>(end - wc);
}

int rpma_cq::fetch(ibv_wc* wc, int count) {
    const std::uint32_t number = conn ? conn->number : 0;
    for (;;) {
        int taken = 0;
        bool failed = false;
        fast::take(
            cq.get(), static_cast<std::size_t>(count),
            [&](const fast::Done& done) __attribute__((always_inline)) {
                fill(wc[taken++], done, number);
                failed |= done.status != FI_DAT_DTO_SUCCESS;
            });
        if (!failed) [[likely]] {
            return taken;
        }
        if (const int left = sift(wc, taken)) {
            return left;
        }
    }
}

int rpma_cq::take_ready(ibv_wc* wc, int count) {
    const std::lock_guard lock(mutex_);
    int taken = 0;
    if (found_) {
        wc[taken++] = *std::exchange(found_, std::nullopt);
    }
    const auto more = std::min<std::ptrdiff_t>(count - taken, std::ssize(ready_));
    std::copy_n(ready_.begin(), more, wc + taken);
    ready_.erase(ready_.begin(), ready_.begin() + more);
    any_ready_ = !ready_.empty();
    return taken + static_cast<int>(more);
}

int rpma_cq::take(ibv_wc* wc, int count) {
    int taken = any_ready_.load(std::memory_order_acquire) ? take_ready(wc, count) : 0;
    taken += taken < count ? fetch(wc + taken, count - taken) : 0;
    if (!is_watched()) {
        return taken;
    }
    if (taken == 0) {
        return settle_and_take(wc, count);
    }
    settle_if_last();
    return taken;
}

// The last one was taken: the next wait is to sleep, not to find the descriptor readable still.
void rpma_cq::settle_if_last() {
    if (!is_filled()) {
        waited_.store(completions.settle() != 0, std::memory_order_relaxed);
    }
}

// Nothing was there. Where its descriptor is readable for what has been withheld, it is not to be.
int rpma_cq::settle_and_take(ibv_wc* wc, int count) {
    waited_.store(false, std::memory_order_relaxed);
    withheld_.store(false, std::memory_order_relaxed);
    if (completions.settle() == 0) {
        return 0;
    }
    waited_.store(true, std::memory_order_relaxed);
    return fetch(wc, count);
}

// A success of this connection, without data, is all that there is to it; anything else is left to
// take().
[[gnu::always_inline]] inline int rpma_cq::take_one(ibv_wc& wc) {
    if (!conn || any_ready_.load(std::memory_order_acquire)) [[unlikely]] {
        return take(&wc, 1);
    }
    const std::uint32_t number = conn->number;
    switch (fast::take_plain(
        cq.get(), [ to = &wc, number ](void* context, std::uint64_t flags, std::size_t length)
                      __attribute__((always_inline)) {
                          *to = {};
                          to->wr_id = reinterpret_cast<std::uintptr_t>(context);
                          to->opcode = opcode_of(flags);
                          to->byte_len = static_cast<std::uint32_t>(length);
                          to->qp_num = number;
                      })) {
    case fast::Taken::one:
        if (is_watched()) [[unlikely]] {
            settle_if_last();
        }
        return 1;
    case fast::Taken::none:
        return is_watched() ? settle_and_take(&wc, 1) : 0;
    default:
        return take(&wc, 1);
    }
}

bool rpma_cq::is_filled() {
    const std::lock_guard alone(finding_);
    if (any_ready_.load(std::memory_order_acquire)) {
        return true;
    }
    ibv_wc wc;
    if (fetch(&wc, 1) == 0) {
        return false;
    }
    const std::lock_guard lock(mutex_);
    found_ = wc;
    any_ready_ = true;
    return true;
}

// Nothing is withheld any more when it is called, so that it finds something once at most.
void rpma_cq::release() {
    const std::lock_guard lock(mutex_);
    if (late_.empty()) {
        return;
    }
    ready_.swap(late_);
    any_ready_ = true;
    waited_ = true;
    completions.channel.raise();
}

namespace {

// Until one of the queues has something to take, which it returns; nullptr: nothing is there, and
// `rc` is what to say.
rpma_cq* wait_for(Completions& completions, int& rc) {
    for (;;) {
        const bool woken = completions.channel.lower();
        for (rpma_cq* const queue : completions.queues) {
            if (queue && queue->is_filled()) {
                queue->waited();
                completions.channel.raise();
                return queue;
            }
        }
        const int told = completions.settle();
        if (told == -FI_EAGAIN) {
            continue;
        }
        if (told) {
            rc = RPMA_FAILURE("waiting for completions", told);
            return nullptr;
        }
        if (woken) { // who was told by poll(2) is not to sleep here (RP-14)
            return completions.queues[0];
        }
        if (completions.channel.is_nonblocking()) {
            rc = RPMA_E_NO_COMPLETION;
            return nullptr;
        }
        if (completions.channel.sleep() == EBADF) {
            rc = RPMA_FAIL(RPMA_E_PROVIDER,
                           "descriptor %d, which a thread waits for completions "
                           "at, was closed by the program",
                           completions.channel.fd());
            return nullptr;
        }
    }
}

// What rpma_cq_get_wc() says of so many.
[[gnu::always_inline]] inline int told_of(int taken, int* num_entries_got) {
    if (taken == 0) {
        return RPMA_E_NO_COMPLETION;
    }
    if (num_entries_got) {
        *num_entries_got = taken;
    }
    return 0;
}

// More than one, or none that may be asked for. Not inlined: what it needs of the stack the usual
// call does without.
[[gnu::noinline]] int get_several(rpma_cq* cq, int num_entries, ibv_wc* wc, int* num_entries_got) {
    if (!cq || num_entries < 1 || !wc || (num_entries > 1 && !num_entries_got)) {
        return RPMA_REFUSE("rpma_cq_get_wc(): cq = %p, num_entries = %d, wc = %p, num_entries_got "
                           "= %p; at least 1, and pointers, the last of which may be NULL for 1",
                           static_cast<void*>(cq), num_entries, static_cast<void*>(wc),
                           static_cast<void*>(num_entries_got));
    }
    return told_of(cq->take(wc, num_entries), num_entries_got);
}

} // namespace

extern "C" {

int rpma_cq_get_fd(const struct rpma_cq* cq, int* fd) {
    if (!cq || !fd) {
        return RPMA_REFUSE("rpma_cq_get_fd(): %s is NULL", cq ? "fd" : "cq");
    }
    *fd = cq->completions.channel.fd();
    return 0;
}

int rpma_cq_wait(struct rpma_cq* cq) {
    if (!cq) {
        return RPMA_REFUSE("rpma_cq_wait(): cq is NULL");
    }
    if (cq->shared) {
        return RPMA_FAIL(RPMA_E_SHARED_CHANNEL, "rpma_cq_wait(): the queue shares its completion "
                                                "channel; use rpma_conn_wait()");
    }
    int rc = 0;
    wait_for(cq->completions, rc);
    return rc;
}

int rpma_conn_wait(struct rpma_conn* conn, int flags, struct rpma_cq** cq, bool* is_rcq) {
    (void)flags; // of no meaning in this version
    if (!conn || !cq) {
        return RPMA_REFUSE("rpma_conn_wait(): %s is NULL", conn ? "cq" : "conn");
    }
    if (!conn->shared_channel) {
        return RPMA_FAIL(RPMA_E_NOT_SHARED_CHNL,
                         "rpma_conn_wait(): the connection was made without a shared completion "
                         "channel; use rpma_cq_wait()");
    }
    int rc = 0;
    rpma_cq* const found = wait_for(conn->main, rc);
    if (found) {
        *cq = found;
        if (is_rcq) {
            *is_rcq = found == conn->rcq.get();
        }
    }
    return rc;
}

int rpma_cq_get_wc(struct rpma_cq* cq, int num_entries, struct ibv_wc* wc, int* num_entries_got) {
    if (!cq || num_entries != 1 || !wc) [[unlikely]] {
        return get_several(cq, num_entries, wc, num_entries_got);
    }
    return told_of(cq->take_one(*wc), num_entries_got);
}

} // extern "C"
