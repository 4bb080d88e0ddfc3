// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The link over a queue pair of an RDMA device. It is made with the handshake, which
// posts receives before the peer may send, and given to the endpoint when that ends well.
// Each connection has a queue pair and a completion queue of its own, so that nothing of
// an earlier one is ever in its way. Under the domain's lock.
#ifndef DAT_LINKS_VERBS_LINK_H
#define DAT_LINKS_VERBS_LINK_H

#include "engine/endpoint.h"
#include "engine/link.h"
#include "links/verbs/domain.h"
#include "links/verbs/life.h"
#include "links/verbs/temporary_registration.h"

#include <cstdint>
#include <memory>
#include <optional>

struct ibv_cq;
struct ibv_qp;
struct ibv_send_wr;
struct ibv_sge;
struct ibv_wc;
struct rdma_conn_param;

namespace dat::verbs {

class KeptId;
class MessageBuffers;
class Queues;
class SharedQueue;

class Link final : public engine::MemoryLink, public CmSink, private engine::Timer {
  public:
    static constexpr engine::LinkKind kKind = engine::LinkKind::verbs;

    // Takes the id. `passive`: of the side that accepts.
    Link(Domain& domain, engine::Endpoint& endpoint, rdma_cm_id* id, bool passive);
    ~Link() override; // after part()
    // Takes the endpoint's queues, or makes some. 0 or -errno, logged.
    int open();
    // The peer has accepted, which is not on iWARP, or this side is about to with `answer`; from
    // here on the device receives. False: errno.
    bool become_ready(const rdma_conn_param* answer);
    rdma_cm_id* id() const { return id_; }
    std::uint32_t number() const; // of the queue pair
    // A connect that the device keeps until it is answered is given up: part() waits for nothing.
    void give_up() { unanswered_ = domain_.device().siw; }
    SocketAddress local() const;
    // What a connect or accept says of RDMA reads; `of_peer`: what the peer asked for.
    std::uint8_t reads_in() const;
    std::uint8_t reads_out() const;
    // RDR-1: the peer serves no more. Not of an iWARP peer: what it says is told to the side
    // that connected as if it were this side's.
    void limit_reads(std::uint8_t peer) { peer_reads_ = peer; }
    // Gives the device the receives that the endpoint has.
    void post_receives();
    // Accepted: what arrives says as much as the connection manager's word (U-65).
    void await_first();
    // The completion queue has something.
    void called();
    // An ibv_event_type, of its queue pair or completion queue; IBV_EVENT_SRQ_ERR: of the shared
    // queue that it takes from.
    void device_says(int event);
    bool takes_from(const SharedQueue& queue) const { return shared_.get() == &queue; }
    // It ends as soon as its handshake has.
    bool has_failed_early() const;
    LinkState state() const { return life_.state(); }

    // Gives the device a receive that was just posted; false: post_receives() has to. `names`:
    // of its segments, nullptr: none. Inlined into a post, as transmit().
    [[gnu::always_inline]] bool take_posted(const engine::Receive& receive, std::uint64_t seq,
                                            const void* const* names) {
        return receive.iov_count == 1 && receive.signaled && !receive.multi &&
               receive.iov.length != 0 && post_plain(receive, seq, names ? *names : nullptr) == 0;
    }

    // The same of a post that asks for nothing else (engine/post.h): a message or write of one
    // segment that is reported. False: transmit_last() has to, and post_receives().
    bool takes_fast() const { return !life_.holds(); }
    [[gnu::always_inline]] bool transmit_fast(const engine::Request& request, std::uint64_t seq) {
        return (request.op == engine::OpCode::send ? send_plain(request, seq, true)
                                                   : write_plain(request, seq, true)) == 0;
    }
    void transmit_last();
    [[gnu::always_inline]] bool take_fast(const engine::Receive& receive, std::uint64_t seq,
                                          const void* name) {
        return post_plain(receive, seq, name) == 0;
    }

    // engine::Link
    // Inlined into a post, of which the compiler knows most of is_plain().
    [[gnu::always_inline]] void transmit(engine::Request& request, std::uint64_t seq,
                                         bool) override {
        if (life_.holds() || !is_plain(request) ||
            (request.op == engine::OpCode::send
                 ? send_plain(request, seq, gives_completion(request, seq))
                 : write_plain(request, seq, gives_completion(request, seq))) != 0) [[unlikely]] {
            transmit_any(seq);
        }
    }
    bool confirms_delivery() const override { return false; }
    bool dat_peer() const override { return domain_.device().immediate; }
    bool wide() const override { return false; }
    bool peer_serves_reads() const override { return reads_out() > 0; }
    bool give(const core::CompletionQueue& to, core::Success& success) noexcept override;
    void start() override;
    void poll() override;
    void push() override {}
    void receive_posted() override { post_receives(); }
    void drain() override;
    std::unique_ptr<engine::HalfClosed> half_close(bool left) override;
    void part(engine::Parting how) override;
    bool arm() override;
    bool has_news() const override;
    void disarm() override;

    void happened(const CmEvent& event) override;

  private:
    static constexpr int kBatch = 16;
    struct Batch;
    struct Ready;

    // A message or write of one segment that asks for nothing else than a completion, or none.
    [[gnu::always_inline]] static bool is_plain(const engine::Request& request) {
        return (request.op == engine::OpCode::send || request.op == engine::OpCode::write) &&
               request.iov_count == 1 && request.length != 0 && !request.fence &&
               !request.solicited && !request.has_data;
    }
    // Of the work request: else places in the queue would never be free again.
    [[gnu::always_inline]] bool gives_completion(const engine::Request& request,
                                                 std::uint64_t seq) const {
        return request.signaled || (seq & signal_mask_) == 0;
    }

    // What the first moments on siw need (opening.cpp).
    struct Opening final : engine::Timer {
        explicit Opening(Link& link) : link_(link) {}
        void expired() override { link_.opening_expired(); }
        Link& link_;
    };

    void expired() override;
    void peer_was_heard();
    void queues_failed(int event);
    void fail_soon(core::Reason reason);
    bool take_what_is_there();
    void open_siw();
    void opening_expired();
    void say_ready();
    void release();
    void ask_to_be_called();
    bool heard() const { return had_message_ || endpoint_.core().receives().first() != unheard_; }
    bool offer_all();      // of batch_; the queue's reader takes it by give()
    void withdraw_offer(); // poll() pushes what is left
    bool take_plain(const ibv_wc& wc);
    bool take(const ibv_wc& wc);
    std::uint64_t receive_of(const ibv_wc& wc);
    void received(const ibv_wc& wc);
    void message_came(const ibv_wc& wc);
    void place_message(const engine::Request& request, std::uint64_t seq, ibv_sge& segment);
    bool invalidated(const ibv_wc& wc) const;
    bool failed(const ibv_wc& wc);
    bool ended_by_stream(const ibv_wc& wc) const;
    void gave_back(const ibv_wc& wc);
    void finish_first();
    // What is known of the reads among some requests.
    enum class Reads : std::uint8_t { answered, unanswered };
    void succeeded(std::uint64_t seq);
    void finish_below(std::uint64_t seq, Reads reads);
    // A later request that completes says nothing of it, so it has to complete itself.
    bool answered_late(const engine::Request& request) const {
        return request.op == engine::OpCode::read && domain_.device().siw;
    }
    void watch_drain();
    void check_drained();
    void go_on();
    bool send_marker();
    void harvest_marker(const ibv_wc& wc);
    void finish_owed();
    void post_bind(std::uint64_t seq);
    void finish_bind(std::uint64_t seq);
    // Of a request that is_plain(), and of a receive of one segment. Not 0: its memory is not
    // known, as it has to be, or the device does not take it; nothing happened.
    int send_plain(const engine::Request& request, std::uint64_t seq, bool completes);
    int write_plain(const engine::Request& request, std::uint64_t seq, bool completes);
    int post_plain(const engine::Receive& receive, std::uint64_t seq, const void* name);
    int post_inline(const engine::Request& request, std::uint64_t seq, bool completes);
    int post_keyed(const engine::Request& request, std::uint64_t seq, bool completes);
    int post_found(const engine::Request& request, std::uint64_t seq, bool completes);
    int hand_over(const engine::Request& request, std::uint64_t seq, unsigned flags);
    int post_found(const engine::Receive& receive, std::uint64_t seq);
    int hand_over(const engine::Receive& receive, std::uint64_t seq, std::uint32_t lkey);
    void transmit_any(std::uint64_t seq);
    bool post_any(std::uint64_t seq);
    void post_failed(std::uint64_t seq, int error);
    bool qp_failed() const;
    void harvest();
    void leave_unanswered();

    Domain& domain_;
    engine::Endpoint& endpoint_;
    rdma_cm_id* id_;
    const bool passive_;
    KeptId* kept_ = nullptr; // the endpoint's; takes the id
    std::unique_ptr<Queues> queues_;
    ibv_qp* qp_ = nullptr; // these two: of queues_
    ibv_cq* cq_ = nullptr;
    ibv_pd* pd_ = nullptr;
    // ibv_post_send(3), or what a device needs in its place.
    int (*post_send_)(ibv_qp*, ibv_send_wr*, ibv_send_wr**) = nullptr;
    std::uint32_t inline_size_ = 0;
    std::uint8_t peer_reads_ = UINT8_MAX;
    std::uint64_t done_;           // requests before this one are finished
    std::uint64_t sent_ = 0;       // on siw: requests before this one are, but for reads
    std::uint64_t drained_at_ = 0; // done_ when that was last looked at
    std::uint64_t signal_mask_;    // a request whose number has none of it gives a completion
    TemporaryRegistrations temporary_registrations_;
    std::shared_ptr<SharedQueue> shared_; // receives come from there; nullptr: the endpoint's own
    std::unique_ptr<MessageBuffers>
        buffers_; // of an endpoint with a sink; nullptr: it has receives
    std::unique_ptr<Batch> batch_;
    std::unique_ptr<Ready> prepared_;      // work requests
    mutable const ibv_wc* next_ = nullptr; // of batch_, up to end_
    mutable const ibv_wc* end_ = nullptr;
    core::CompletionQueue* offered_to_ = nullptr; // what is left of batch_, as far as it is plain
    std::uint32_t binds_ = 0;                     // on their way
    Opening opening_{*this};
    std::uint64_t unheard_ = 0; // the receive that the peer's first message completes
    bool had_message_ = false;  // in buffers_
    int times_ready_ = 0;       // the peer was told that it may send
    bool telling_ = false;      // and is being told
    bool asleep_ = true;
    bool will_be_called_ = false; // by the next completion
    LinkLife life_;
    bool given_back_ = false; // a request, by a queue pair that has failed
    bool unanswered_ = false;
    core::Reason likely_reason_ = core::Reason::peer_reset; // if nobody says why it has failed
    std::optional<int> said_early_; // an ibv_event_type of a failure, before it was started
};

} // namespace dat::verbs

#endif
