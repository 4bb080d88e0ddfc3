// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See link.h: posting and completions. How a connection ends stands in ending.cpp.
#include "links/verbs/link.h"

#include "base/assert.h"
#include "base/copy.h"
#include "base/log.h"
#include "engine/domain.h"
#include "engine/kernel.h"
#include "links/verbs/channel.h"
#include "links/verbs/link_parts.h"
#include "links/verbs/message_buffers.h"
#include "links/verbs/queues.h"
#include "links/verbs/shared_queue.h"
#include "links/verbs/sigpipe.h"

#include <algorithm>
#include <arpa/inet.h>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <rdma/rdma_cma.h>
#include <utility>

namespace dat::verbs {

using core::DtoStatus;
using core::Reason;
using core::Stimulus;
using engine::OpCode;
using engine::Parting;

Link::Link(Domain& domain, engine::Endpoint& endpoint, rdma_cm_id* id, bool passive)
    : engine::MemoryLink(kKind), domain_(domain), endpoint_(endpoint), id_(id), passive_(passive),
      done_(endpoint.core().requests().next()),
      // A sink hears of each of its own at once.
      signal_mask_(
          endpoint.sink() ? 0 : std::bit_floor(std::max(endpoint.limits().requests / 4, 1U)) - 1),
      temporary_registrations_(domain), batch_(std::make_unique<Batch>()),
      prepared_(std::make_unique<Ready>()) {
    domain_.engine().memory().expect_link();
    prepared_->send.sg_list = &prepared_->from;
    prepared_->receive.sg_list = &prepared_->into;
    prepared_->send.num_sge = prepared_->receive.num_sge = 1;
}

Link::~Link() {
    DAT_ASSERT(life_.is_over() && !queues_ && !armed() && !opening_.armed());
    domain_.engine().memory().forget(*this);
}

int Link::open() {
    pd_ = domain_.pd(endpoint_.zone());
    if (!pd_) {
        return log_failure("a connection: ibv_alloc_pd()", errno);
    }
    if (endpoint_.shared()) {
        shared_ = SharedQueue::of(domain_, *endpoint_.shared(), pd_);
        if (!shared_) {
            return -EINVAL;
        }
    }
    Queues::Kind kind = Queues::kind_for(endpoint_, pd_, *id_);
    if (shared_) {
        kind.shared = shared_.get();
        kind.receives = shared_->size(); // one connection may take all that there are
    }
    std::unique_ptr<Queues> made = endpoint_.take_prepared<Queues>();
    queues_ = made && made->kind() == kind ? std::move(made) : Queues::make(domain_, kind, id_);
    if (!queues_) {
        return -EINVAL;
    }
    qp_ = queues_->qp();
    cq_ = queues_->cq();
    queues_->belong_to(this);
    inline_size_ = queues_->inline_size();
    post_send_ = domain_.device().siw   ? post_to_siw
                 : domain_.device().rxe ? post_uncancelled
                                        : qp_->context->ops.post_send;
    if (domain_.device().iwarp) {
        id_->qp = qp_;
    }
    domain_.add(*this);
    if (endpoint_.sink()) {
        buffers_ = MessageBuffers::make(pd_, endpoint_.limits().requests);
        if (!buffers_ || !buffers_->give_all(qp_)) {
            return log_failure("a connection: memory for its messages", errno);
        }
    }
    return 0;
}

bool Link::become_ready(const rdma_conn_param* answer) {
    return domain_.device().iwarp || queues_->become_ready(domain_, id_, answer);
}

std::uint32_t Link::number() const { return qp_->qp_num; }

SocketAddress Link::local() const { return address_of(rdma_get_local_addr(id_)); }

std::uint8_t Link::reads_in() const {
    return static_cast<std::uint8_t>(
        std::min<std::uint32_t>(endpoint_.reads().in, domain_.device().reads_in));
}

std::uint8_t Link::reads_out() const {
    return static_cast<std::uint8_t>(
        std::min<std::uint32_t>({endpoint_.reads().out, domain_.device().reads_out, peer_reads_}));
}

// --- posting ---

namespace {

// FI_ATOMIC over a device has no masks: ofi lets nothing else through.
void set_atomic(ibv_send_wr& wr, const engine::Request& request, const std::byte* area) {
    engine::AtomicOperands operands;
    std::memcpy(&operands, area, sizeof operands);
    const bool adds = request.op == OpCode::fetch_add;
    wr.wr.atomic.remote_addr = request.remote_address;
    wr.wr.atomic.rkey = request.remote_key;
    wr.wr.atomic.compare_add = adds ? operands.data : operands.compare;
    wr.wr.atomic.swap = adds ? 0 : operands.data;
}

} // namespace

// What the only segment of an operation is named as.
static const void* first_of(const void* const* names) { return names ? *names : nullptr; }

static unsigned signal_flag(bool completes) { return completes ? IBV_SEND_SIGNALED : 0; }

// The device's answer is this one's: what comes here has nothing to undo, and no frame.
[[gnu::always_inline]] inline int Link::hand_over(const engine::Request& request, std::uint64_t seq,
                                                  unsigned flags) {
    Ready& ready = *prepared_;
    ready.from.addr = reinterpret_cast<std::uintptr_t>(request.iov.base);
    ready.from.length = static_cast<std::uint32_t>(request.length);
    ready.send.wr_id = plain_request_id(seq);
    ready.send.send_flags = flags;
    return post_send_(qp_, &ready.send, &ready.bad_send);
}

// Longer than what goes inline.
[[gnu::noinline]] int Link::post_keyed(const engine::Request& request, std::uint64_t seq,
                                       bool completes) {
    const Memory::Entry* const known = Memory::only_named(first_of(endpoint_.request_names(seq)),
                                                          pd_, request.iov.base, request.length, 0);
    if (!known) {
        return post_found(request, seq, completes);
    }
    prepared_->from.lkey = known->lkey;
    return hand_over(request, seq, signal_flag(completes));
}

[[gnu::noinline]] int Link::post_found(const engine::Request& request, std::uint64_t seq,
                                       bool completes) {
    const Memory::Entry* const known =
        domain_.memory().find(pd_, request.iov.base, request.length, 0);
    if (!known) {
        return ENOMEM;
    }
    prepared_->from.lkey = known->lkey;
    return hand_over(request, seq, signal_flag(completes));
}

[[gnu::always_inline]] inline int Link::post_inline(const engine::Request& request,
                                                    std::uint64_t seq, bool completes) {
    return request.length <= inline_size_
               ? hand_over(request, seq, signal_flag(completes) | IBV_SEND_INLINE)
               : post_keyed(request, seq, completes);
}

int Link::send_plain(const engine::Request& request, std::uint64_t seq, bool completes) {
    prepared_->send.opcode = IBV_WR_SEND;
    return post_inline(request, seq, completes);
}

int Link::write_plain(const engine::Request& request, std::uint64_t seq, bool completes) {
    ibv_send_wr& wr = prepared_->send;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.wr.rdma.remote_addr = request.remote_address;
    wr.wr.rdma.rkey = request.remote_key;
    return post_inline(request, seq, completes);
}

void Link::transmit_last() { transmit_any(endpoint_.core().requests().next() - 1); }

void Link::transmit_any(std::uint64_t seq) {
    if (life_.holds()) {
        return; // release()
    }
    const engine::Request& request = endpoint_.request(seq);
    const std::uint64_t wr_id = request_id(seq);
    ibv_sge segments[engine::kMaxIov];
    ibv_send_wr wr{};
    ibv_send_wr* bad = nullptr;
    wr.wr_id = wr_id;
    wr.sg_list = segments;
    if (gives_completion(request, seq) || answered_late(request)) {
        wr.send_flags = IBV_SEND_SIGNALED;
    }
    // DTO-24. siw refuses it on a read, which needs none there: reads are answered in the
    // order in which they were asked (RFC 5040, section 5.5).
    if (request.fence && !(request.op == OpCode::read && domain_.device().siw)) [[unlikely]] {
        wr.send_flags |= IBV_SEND_FENCE;
    }
    if (request.solicited) [[unlikely]] {
        wr.send_flags |= IBV_SEND_SOLICITED;
    }
    int access = 0;
    switch (request.op) {
    case OpCode::send:
        wr.opcode = request.has_data ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
        break;
    case OpCode::send_invalidate:
        wr.opcode = IBV_WR_SEND_WITH_INV;
        break;
    case OpCode::bind:
        return post_bind(seq);
    case OpCode::write:
        wr.opcode = request.has_data ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
        break;
    case OpCode::read:
        wr.opcode = IBV_WR_RDMA_READ;
        access = domain_.device().iwarp ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE
                                        : IBV_ACCESS_LOCAL_WRITE;
        break;
    case OpCode::fetch_add:
        wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        access = IBV_ACCESS_LOCAL_WRITE;
        break;
    case OpCode::compare_swap:
        wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
        access = IBV_ACCESS_LOCAL_WRITE;
        break;
    }
    if (request.op == OpCode::send_invalidate) [[unlikely]] {
        wr.invalidate_rkey = request.remote_key;
    } else {
        wr.imm_data = htonl(static_cast<std::uint32_t>(request.data));
    }
    wr.wr.rdma.remote_addr = request.remote_address;
    wr.wr.rdma.rkey = request.remote_key;
    std::span<const engine::Iov> from = request.segments();
    engine::Iov unwanted{};
    if (engine::is_atomic(request.op)) [[unlikely]] {
        std::byte* const area = endpoint_.inline_area(seq);
        set_atomic(wr, request, area);
        if (from.empty()) { // the device tells what was there, also where nobody asks
            unwanted = {area + sizeof(engine::AtomicOperands), sizeof(std::uint64_t)};
            from = {&unwanted, 1};
        }
    }
    if (!engine::is_answered(request.op) && request.length <= inline_size_) {
        wr.send_flags |= IBV_SEND_INLINE;
        access = kInline;
    }
    if (buffers_ && request.op == OpCode::send && access != kInline) {
        place_message(request, seq, segments[0]);
        wr.num_sge = 1;
    } else if (!temporary_registrations_.gather(pd_, from, endpoint_.request_names(seq), access,
                                                wr_id, segments, wr.num_sge)) {
        return post_failed(seq, ENOMEM);
    }
    if (wr.num_sge == 0 && request.op == OpCode::read) { // some want one
        segments[0] = {};
        wr.num_sge = 1;
    }
    if (const int error = post_send_(qp_, &wr, &bad)) [[unlikely]] {
        post_failed(seq, error);
    }
}

// A short message of memory that is not registered is copied, which is sooner done.
void Link::place_message(const engine::Request& request, std::uint64_t seq, ibv_sge& segment) {
    DAT_ASSERT(request.length <= kMessageSize);
    std::byte* const area = buffers_->outgoing(endpoint_.core().requests().slot(seq));
    std::byte* at = area;
    for (const engine::Iov& piece : request.segments()) {
        if (piece.length > 0) {
            base::copy(at, piece.base, piece.length);
            at += piece.length;
        }
    }
    segment = {reinterpret_cast<std::uintptr_t>(area), static_cast<std::uint32_t>(request.length),
               buffers_->key()};
}

// RMR-4: what is behind it in the queue waits for it. A window that is to be unbound is
// so when what was posted before has completed: a write of no bytes tells that.
void Link::post_bind(std::uint64_t seq) {
    const engine::Request& request = endpoint_.request(seq);
    const engine::Region* const window = domain_.engine().regions().region(request.remote_key);
    ibv_sge nothing{};
    ibv_send_wr wr{};
    ibv_send_wr* bad = nullptr;
    wr.wr_id = request_id(seq);
    wr.send_flags = IBV_SEND_SIGNALED;
    if (request.fence) {
        wr.send_flags |= IBV_SEND_FENCE;
    }
    wr.sg_list = &nothing;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.num_sge = domain_.device().iwarp ? 1 : 0;
    if (window && window->length > 0) {
        wr.num_sge = 0;
        domain_.windows().bind(request.remote_key, *window, this, wr);
    }
    ++binds_;
    if (const int error = post_send_(qp_, &wr, &bad)) {
        post_failed(seq, error);
    }
}

void Link::finish_bind(std::uint64_t seq) {
    --binds_;
    const std::uint32_t key = endpoint_.request(seq).remote_key;
    endpoint_.carry_out_bind(seq);
    domain_.windows().completed(key);
}

// Such a request never was on its way: it fails, and the connection with it.
void Link::post_failed(std::uint64_t seq, int error) {
    DAT_WARN(ep_data, "a request cannot be posted to %s: %s", domain_.device().name.c_str(),
             std::strerror(std::abs(error)));
    temporary_registrations_.end(request_id(seq));
    endpoint_.request_failed(seq, DtoStatus::local_ep, Reason::resources, Parting::clean);
}

[[gnu::always_inline]] inline int Link::hand_over(const engine::Receive& receive, std::uint64_t seq,
                                                  std::uint32_t lkey) {
    Ready& ready = *prepared_;
    ready.into = {reinterpret_cast<std::uintptr_t>(receive.iov.base),
                  static_cast<std::uint32_t>(receive.iov.length), lkey};
    ready.receive.wr_id = plain_receive_id(seq);
    return ibv_post_recv(qp_, &ready.receive, &ready.bad_receive);
}

int Link::post_plain(const engine::Receive& receive, std::uint64_t seq, const void* name) {
    const Memory::Entry* const known =
        Memory::only_named(name, pd_, receive.iov.base, receive.iov.length, IBV_ACCESS_LOCAL_WRITE);
    return known ? hand_over(receive, seq, known->lkey) : post_found(receive, seq);
}

[[gnu::noinline]] int Link::post_found(const engine::Receive& receive, std::uint64_t seq) {
    const Memory::Entry* const known =
        domain_.memory().find(pd_, receive.iov.base, receive.iov.length, IBV_ACCESS_LOCAL_WRITE);
    return known ? hand_over(receive, seq, known->lkey) : ENOMEM;
}

void Link::post_receives() {
    while (!life_.is_over() && !shared_ && endpoint_.has_receive()) {
        const std::uint64_t seq = endpoint_.match_receive();
        const bool taken = !endpoint_.of_old_zone(seq) &&
                           take_posted(endpoint_.receive(seq), seq, endpoint_.receive_names(seq));
        if (!taken && !post_any(seq)) [[unlikely]] {
            return;
        }
    }
}

// Any other. One of an old zone (U-32) has its place without its memory, where each message but
// an empty one fails it. False: it was the last, for the device does not take it, which is logged.
[[gnu::noinline]] bool Link::post_any(std::uint64_t seq) {
    const engine::Receive& receive = endpoint_.receive(seq);
    ibv_sge segments[engine::kMaxIov];
    ibv_recv_wr wr{};
    ibv_recv_wr* bad = nullptr;
    wr.wr_id = receive_id(seq);
    wr.sg_list = segments;
    int error = ENOMEM;
    if (endpoint_.of_old_zone(seq) ||
        temporary_registrations_.gather(pd_, receive.segments(), endpoint_.receive_names(seq),
                                        IBV_ACCESS_LOCAL_WRITE, wr.wr_id, segments, wr.num_sge)) {
        error = ibv_post_recv(qp_, &wr, &bad);
    }
    if (error == 0) {
        return true;
    }
    DAT_WARN(ep_data, "a receive cannot be posted to %s: %s", domain_.device().name.c_str(),
             std::strerror(std::abs(error)));
    temporary_registrations_.end(wr.wr_id);
    endpoint_.complete_receive(seq, DtoStatus::local_ep, 0);
    if (life_.has_started()) {
        endpoint_.over(Stimulus::broken, Reason::resources, Parting::clean);
    }
    return false;
}

// --- completions ---

void Link::start() {
    life_.happen(LinkEvent::start);
    if (said_early_) {
        device_says(*said_early_);
        if (life_.is_over()) {
            return;
        }
    }
    post_receives();
    if (!life_.is_over() && domain_.device().siw) {
        open_siw();
    }
    if (!life_.is_over()) {
        disarm();
        domain_.engine().wake(*this);
        poll();
    }
}

// The requester has sent something, so it is connected, whatever became of its confirmation. Some
// devices tell of this as well (IBV_EVENT_COMM_EST), of reads and writes too.
void Link::await_first() { ask_to_be_called(); }

// Asked for once the device calls for the next completion, whoever takes that, so until it has
// called there is nothing to ask for.
void Link::ask_to_be_called() {
    if (!std::exchange(will_be_called_, true)) {
        kernel::uncancelled(ibv_req_notify_cq, cq_, 0);
    }
}

void Link::called() {
    will_be_called_ = false;
    if (life_.is_over()) {
        return;
    }
    if (!life_.has_started()) {
        peer_was_heard();
    } else if (asleep_) {
        disarm();
        domain_.engine().wake(*this);
        poll();
    }
}

// Refused where the connection is there by now.
void Link::peer_was_heard() { kernel::uncancelled(rdma_notify, id_, IBV_EVENT_COMM_EST); }

bool Link::arm() {
    asleep_ = true;
    ask_to_be_called();
    return false; // what completes from here on is told of
}

bool Link::has_news() const {
    if (next_ == end_) {
        next_ = batch_->wc;
        end_ = next_ + std::max(ibv_poll_cq(cq_, kBatch, batch_->wc), 0);
    }
    return next_ != end_;
}

void Link::disarm() {
    asleep_ = false;
    idle_polls_ = 0;
}

// Flags of a receive that may be more than a message.
static constexpr unsigned kMore = IBV_WC_WITH_IMM | IBV_WC_WITH_INV | IBV_WC_IP_CSUM_OK;

// The success of a work request that is plain, and whose completion is due. False: it is not
// that, and nothing happened. Does not end the connection.
[[gnu::always_inline]] inline bool Link::take_plain(const ibv_wc& wc) {
    if (wc.status != IBV_WC_SUCCESS) [[unlikely]] {
        return false;
    }
    if (is_plain_receive(wc.wr_id)) {
        if ((wc.wc_flags & kMore) != 0) [[unlikely]] {
            return false;
        }
        endpoint_.complete_single(seq_of(wc.wr_id), wc.byte_len);
        return true;
    }
    if (wc.wr_id != plain_request_id(done_)) [[unlikely]] {
        return false;
    }
    endpoint_.finish_request(done_++, DtoStatus::success);
    return true;
}

// Of what take_plain() would push.
bool Link::give(const core::CompletionQueue& to, core::Success& success) noexcept {
    const ibv_wc& wc = *next_;
    const std::uint64_t seq = seq_of(wc.wr_id);
    if (wc.status != IBV_WC_SUCCESS) [[unlikely]] {
        return false;
    }
    if (is_plain_receive(wc.wr_id)) {
        if ((wc.wc_flags & kMore) != 0 || !endpoint_.give_single(seq, wc.byte_len, to, success))
            [[unlikely]] {
            return false;
        }
    } else {
        if (!is_plain_request(wc.wr_id) || !endpoint_.give_request(seq, to, success)) [[unlikely]] {
            return false;
        }
        done_ = seq + 1;
    }
    if (++next_ == end_) {
        withdraw_offer();
    }
    return true;
}

// Nothing but the completions has to be looked at, and the queue of the first takes them so.
bool Link::offer_all() {
    if (!life_.is_open() || endpoint_.watched()) [[unlikely]] {
        return false;
    }
    core::CompletionQueue* const queue = endpoint_.fast_queue(is_receive(next_->wr_id));
    if (!queue || !queue->offer(*this)) {
        return false;
    }
    offered_to_ = queue;
    return true;
}

void Link::withdraw_offer() {
    if (offered_to_) {
        offered_to_->stop(*this);
        offered_to_ = nullptr;
    }
}

void Link::poll() {
    if (!has_news()) {
        if (!asleep_ && ++idle_polls_ > domain_.engine().memory().share_of_polls()) {
            domain_.engine().memory().let_sleep(*this);
        }
        return;
    }
    idle_polls_ = 0;
    if (offered_to_) { // and something else is wanted meanwhile, or it is not plain
        withdraw_offer();
    } else if (offer_all()) {
        return;
    }
    for (const ibv_wc *wc = next_, *const end = end_; wc != end; ++wc) {
        if (take_plain(*wc)) [[likely]] {
            continue;
        }
        next_ = wc + 1;
        if (!take(*wc)) {
            return;
        }
    }
    next_ = end_;
    if (!life_.is_open()) [[unlikely]] {
        go_on();
    }
}

// What waited for a completion may be due, of a link that is not merely open.
[[gnu::noinline]] void Link::go_on() {
    if (life_.holds() && heard()) {
        release();
    }
    check_drained();
}

// False: the connection is over.
bool Link::take(const ibv_wc& wc) {
    if (wc.status != IBV_WC_SUCCESS) [[unlikely]] {
        return failed(wc);
    }
    if (is_receive(wc.wr_id)) {
        buffers_ ? message_came(wc) : received(wc);
    } else if (wc.wr_id == kMarker) {
        finish_below(endpoint_.core().requests().next(), Reads::answered);
        life_.happen(LinkEvent::confirm);
    } else if (wc.wr_id == kReady) {
        telling_ = false;
    } else {
        succeeded(seq_of(wc.wr_id));
    }
    return !life_.is_over();
}

// A request gives no completion of its own where none is asked for: the next that does
// stands for those before it, since they complete in order. But siw tells of a message or a write
// as it goes out, also where a read before it has not been answered.
void Link::succeeded(std::uint64_t seq) {
    if (seq < done_) {
        return;
    }
    if (!domain_.device().siw) {
        return finish_below(seq + 1, Reads::answered);
    }
    if (endpoint_.request(seq).op == OpCode::read) { // those before it have been told of
        finish_below(seq + 1, Reads::answered);
    } else {
        sent_ = std::max(sent_, seq + 1);
    }
    finish_below(sent_, Reads::unanswered);
}

// The requests before that one; with `unanswered` the first read ends it.
void Link::finish_below(std::uint64_t seq, Reads reads) {
    while (done_ < seq) {
        if (reads == Reads::unanswered && endpoint_.request(done_).op == OpCode::read) {
            return;
        }
        if (binds_ > 0 && endpoint_.request(done_).op == OpCode::bind) [[unlikely]] {
            temporary_registrations_.end(request_id(done_));
            finish_bind(done_++);
            continue;
        }
        finish_first();
    }
}

// The number of its receive with the endpoint.
std::uint64_t Link::receive_of(const ibv_wc& wc) {
    if (shared_) [[unlikely]] {
        return shared_->completed(wc.wr_id, endpoint_);
    }
    temporary_registrations_.end(wc.wr_id);
    return seq_of(wc.wr_id);
}

// Linux's rxe says it with the kernel's bit, which is another one in a program.
bool Link::invalidated(const ibv_wc& wc) const {
    const engine::Region* const region = domain_.engine().regions().region(wc.invalidated_rkey);
    return (wc.wc_flags & IBV_WC_WITH_INV) != 0 || (region && region->window);
}

// One that asks for anything else than to be looked at is none that a sink's peer sends.
void Link::message_came(const ibv_wc& wc) {
    const auto number = static_cast<std::uint32_t>(seq_of(wc.wr_id));
    const bool plain = wc.opcode == IBV_WC_RECV && (wc.wc_flags & IBV_WC_WITH_IMM) == 0;
    engine::MessageSink& sink = *endpoint_.sink();
    had_message_ = true;
    if (!plain || !sink.arrived(buffers_->incoming(number), wc.byte_len)) {
        return endpoint_.over(Stimulus::broken, Reason::protocol, Parting::clean);
    }
    if (!buffers_->give(qp_, number)) {
        log_failure("a connection: a buffer for a message", errno);
        return endpoint_.over(Stimulus::broken, Reason::resources, Parting::clean);
    }
    sink.buffer_free();
}

void Link::received(const ibv_wc& wc) {
    const std::uint64_t seq = receive_of(wc);
    const bool by_write = wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM;
    if ((wc.wc_flags & kMore) == 0) [[likely]] {
        return endpoint_.complete_message(seq, wc.byte_len);
    }
    if ((wc.wc_flags & IBV_WC_WITH_IMM) == 0) {
        if (!invalidated(wc)) {
            return endpoint_.complete_message(seq, wc.byte_len);
        }
        domain_.engine().regions().spoil(wc.invalidated_rkey);
        return endpoint_.complete_receive(seq, DtoStatus::success, wc.byte_len,
                                          engine::kInvalidated, wc.invalidated_rkey);
    }
    const auto how = static_cast<std::uint8_t>(by_write ? engine::kWithData | engine::kByWrite
                                                        : engine::kWithData);
    endpoint_.complete_receive(seq, DtoStatus::success, wc.byte_len, how, ntohl(wc.imm_data));
}

} // namespace dat::verbs
