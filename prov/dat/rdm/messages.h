// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The messages of a reliable datagram endpoint: one endpoint of the software domain for each
// peer carries them, and this is what stands between those and the program. Who makes the
// connections is the owner. Everything is called under the domain's lock.
//
// A small message goes out at once, behind its Head, and into the receive that it matches
// straight from where it came in. Without a receive it is held in memory, as much of each peer
// as that was told (its window). A large one is announced, and so is a small one that the window
// has no room for: the Head is held, 128 bytes, and the payload stays with its sender until a
// receive takes it, which reads it by RDMA. So a receive for the last of many messages finds it,
// whatever is still waiting, and a receiver needs no memory for payload that it cannot place. Over
// a device, where to register memory takes longer than to copy it, a small one that is announced is
// sent when its receive asks for it.
#ifndef DAT_RDM_MESSAGES_H
#define DAT_RDM_MESSAGES_H

#include "base/copy.h"
#include "base/list.h"
#include "base/slabs.h"
#include "core/completion.h"
#include "core/matching.h"
#include "engine/domain.h"
#include "engine/endpoint.h"
#include "rdm/limits.h"
#include "rdm/pool.h"
#include "rdm/wire.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace dat::rdm {

class Messages;
class Peer;

inline constexpr std::size_t kInjectSize = 96; // bytes that a post may copy
inline constexpr std::size_t kMaxIov = engine::kMaxIov;
static_assert(kInjectSize + kMaxHead <= engine::kInjectSize);
static_assert(kMaxAnnouncement <= engine::kInjectSize);

// A message as the program described it.
struct Outgoing {
    const engine::Iov* iov;
    std::size_t count;
    std::uint64_t length; // of all segments
    std::uint64_t tag = 0;
    std::uint64_t data = 0;
    void* context = nullptr;
    std::uint64_t completion_flags = 0;
    engine::Level level = engine::Level::taken;
    bool tagged = false;
    bool has_data = false;
    bool injected = false;  // the payload is copied; at most kInjectSize
    bool reported = true;   // a success is
    bool silent = false;    // nothing is
    bool delivered = false; // a success is one only when the message is in its receive
    bool fence = false;
    bool more = false; // another follows at once
};

// A receive.
struct Receive : core::PostedReceive {
    void* context;
    std::uint64_t completion_flags;
    std::uint64_t capacity; // of all segments
    std::uint64_t used;     // of one that stays
    std::uint32_t fetching; // messages that are being read into it
    std::uint8_t count;
    bool tagged;
    bool reported; // a success is
    bool over;     // one that stays takes no more
    std::array<engine::Iov, kMaxIov> iov;
};

// A message that is held. Behind it: data and id, if it has them, and then its payload, or the
// places of it.
struct Unexpected : core::UnexpectedMessage {
    std::uint32_t size; // bytes of what is behind
    std::uint32_t turn; // of Peer, when it came
    Kind kind;
    std::uint8_t flags; // of HeadFlags
    std::byte* behind() { return reinterpret_cast<std::byte*>(this + 1); }
    bool is_announced() const { return kind == Kind::announced || kind == Kind::announced_tagged; }
    // As the sender of one that is not announced counts it.
    std::uint32_t cost() const {
        const std::size_t before = ((flags & kHasData) != 0 ? sizeof(std::uint64_t) : 0) +
                                   ((flags & kWantsDone) != 0 ? sizeof(std::uint64_t) : 0);
        return cost_of(size - before);
    }
};

struct OfPeer; // the lists of a peer
struct Pushed; // of a peer, what goes in pieces

// What a request of Role::own is for.
struct Posted : base::Hook<OfPeer> {
    explicit Posted(bool send) : is_send(send) {}
    const bool is_send; // a Send, else a Fetch
};

// A message of this side that has not gone, or that its receiver has to say `done` of.
struct Send : Posted, base::Hook<Pushed> {
    Send() : Posted(true) {}
    Peer* peer;
    std::uint64_t id; // changes whenever this is used again
    bool waits;       // for `done`
    bool goes;        // its request is outstanding, and reads the program's memory
    bool arrived;     // `done` has come although it goes
    std::uint8_t key_count;
    std::array<std::uint32_t, kMaxIov> keys;
    std::uint64_t pushed; // bytes that have gone in pieces
    Outgoing what;        // `iov` is that below
    std::array<engine::Iov, kMaxIov> iov;
    std::array<std::byte, kInjectSize> copy;
};

// A message that was announced, and goes into a receive; or one whose sender is to be told that
// it has.
struct Fetch : Posted {
    Fetch() : Posted(false) {}
    Peer* peer;
    Receive* receive; // nullptr: there is no more to be done for it here
    std::uint64_t id;
    std::uint64_t tag;
    std::uint64_t data;
    std::uint64_t length; // of the message
    std::uint64_t wanted; // bytes of it that fit
    std::uint64_t offset; // of `segment`: bytes that have been asked for
    std::uint64_t asked;  // of these; of one that both sides copy: those from the beginning on
    std::uint64_t left;   // of one that both sides copy: those before what has been copied here
    std::uint32_t rounds; // the same: for so long no piece has come
    std::uint32_t reading;
    std::uint8_t flags;
    std::uint8_t segments;
    std::uint8_t segment; // the next
    core::DtoStatus status;
    std::array<Place, kMaxPlaces> places;
    std::array<engine::Iov, kMaxIov> to;
    std::uint8_t count;
};

// What stands before the payload of a message.
struct Header {
    Head head;
    std::uint64_t data; // with kHasData
    std::uint64_t id;   // with kWantsDone
    std::size_t size;
};

// Who makes a peer's connection.
class PeerOwner {
  public:
    // It is wanted, and there is none.
    virtual void wanted(Peer& peer) = 0;
    // There is no memory for what this side owes to it: the connection has to end. In the middle
    // of a link's work.
    virtual void give_up(Peer& peer) = 0;
    // The first message of a connection that was accepted has come.
    virtual void confirmed(Peer& peer) = 0;
    // The peer asks whether the connection may be let go, agrees, or declines. In the middle of a
    // link's work.
    virtual void asked(Peer& peer) = 0;
    virtual void agreed(Peer& peer) = 0;
    virtual void declined(Peer& peer) = 0;

  protected:
    ~PeerOwner() = default;
};

// Where memory that a peer is to read has to be registered with a device.
class ReadRegistrar {
  public:
    // False: it cannot be, which is logged.
    virtual bool add(const engine::Iov& memory, std::uint32_t& key) = 0;
    virtual void remove(const engine::Iov& memory, std::uint32_t key) = 0;

  protected:
    ~ReadRegistrar() = default;
};

// One peer, whether it is connected or not.
class Peer : public engine::MessageSink, private engine::Deferred {
  public:
    // `number`: of the peer, for core::Matching. Throws std::bad_alloc.
    Peer(Messages& messages, PeerOwner& owner, std::uint32_t number);
    virtual ~Peer(); // after fail() and parted()
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    std::uint32_t number() const { return number_; }
    // What completions say of whom a message came from, opaque here; and the status that those of
    // its messages have, success or unknown_source.
    void set_source(std::uint32_t source, core::DtoStatus arrival = core::DtoStatus::success) {
        source_ = source;
        arrival_ = arrival;
    }
    std::uint32_t source() const { return source_; }
    core::DtoStatus arrival() const { return arrival_; }
    // It is this endpoint itself.
    void make_self() { self_ = true; }
    bool is_self() const { return self_; }

    // The endpoint has a link. `window`: what the peer takes. What waits goes out from now on, of
    // an endpoint that has accepted (`accepted`) from go_on() on.
    void connected(engine::Endpoint& endpoint, std::uint32_t window, bool accepted);
    void go_on();
    // The connection may be used for what is posted now.
    bool flows() const { return flowing_; }
    // The connection is over, or never was one that counted. No request of it is outstanding.
    void parted();
    // Nothing of the connection is queued, held or outstanding.
    bool is_quiet() const;
    // Another number whenever something was posted to the connection, or came by it.
    std::uint64_t activity() const;
    // Says one of ask, agree and decline. Behind the first two nothing goes out before go_on();
    // what is posted is queued.
    void say_of_release(Kind kind);
    // What is queued or outstanding is over, and each receive that names this peer.
    void fail();
    // The peer has said that it closes its endpoint.
    bool said_goodbye() const { return said_goodbye_; }
    // Says the same to it, behind all else. False: there is no room now.
    bool say_goodbye();
    // Nothing of this side waits to go out, or for the peer to take it.
    bool idle() const { return queued_.empty() && waiting_.empty() && to_say_.empty(); }
    bool has_queued() const { return !queued_.empty(); }
    // Nothing here is of it any more: no message, held or on its way, no receive that names it,
    // no connection. It may become another one, with the same number.
    bool is_unused() const;
    // Something of that was accepted and its success is not reported.
    bool owes();

    core::PostVerdict send(const Outgoing& out);
    core::PostVerdict send_here(const Outgoing& out); // rdm/post.h

    // engine::MessageSink
    bool arrived(const std::byte* message, std::size_t size) override;
    Placement begins(const std::byte* start, std::size_t size) override;
    void placed(std::uint64_t length) override;
    std::size_t longest_head() const override { return kMaxHead; }
    std::size_t longest() const override;
    void finished(void* context, core::DtoStatus status) override;
    void has_room() override;
    void buffer_free() override;

  private:
    friend class Messages;
    static constexpr std::uint32_t kReserve = 16; // places of the queue that the program gets not
    static constexpr std::uint32_t kReads = 16;   // outstanding at once

    void run() override;
    void run_soon();
    void tell_of_room(bool more);
    // It need not be announced, as far as the window has room.
    bool is_eager(const Outgoing& out) const { return out.length <= eager_ && out.count < kMaxIov; }
    bool has_window(const Outgoing& out) const {
        return sent_ - told_ + cost_of(out.length) <= window_;
    }
    bool fits(const Outgoing& out) const {
        return is_eager(out) && !out.delivered && has_window(out);
    }
    // The peer has a buffer for another message. Where they are not counted it always has.
    bool has_buffer() const { return buffers_ > kKeptBuffers; }
    // Posts a message of this side, which takes one. Precondition: there is one.
    template <class Post> core::PostVerdict with_buffer(Post&& post);
    // Where it is announced its receiver has to ask for it.
    bool is_asked_for(const Outgoing& out) const {
        return kind_ == engine::LinkKind::verbs && is_eager(out);
    }
    void got_buffers(std::uint32_t count);
    // So many of this side are free again that it is said by itself.
    bool owes_buffers() const { return freed_ >= verbs::kMessages / 2; }
    bool room(std::uint32_t reserve) const {
        const core::DtoStream& stream = endpoint_->core().requests();
        return stream.outstanding() + reserve < stream.limit();
    }
    // `waiting`: not nullptr: the receiver says when it is where it belongs.
    core::PostVerdict send_now(const Outgoing& out, Send* waiting);
    template <class L> core::PostVerdict post(const Outgoing& out, Send* waiting);
    core::PostVerdict send_on_device(const Outgoing& out, Send* waiting);
    core::PostVerdict send_otherwise(const Outgoing& out);
    core::PostVerdict send_to_self(const Outgoing& out);
    enum class Announced : std::uint8_t { went, later, never };
    Announced announce(Send& send);
    std::byte* put_places(std::byte* at, const Send& send) const;
    bool send_as_request(Send& send);
    void send_queued();
    bool post_own(const std::byte* bytes, std::size_t size, bool fence = false,
                  std::uint32_t kept = kKeptBuffers);
    bool say(Kind kind, std::uint64_t tag);
    Head plain_head(Kind kind, std::uint64_t tag, std::uint8_t flags = 0,
                    std::uint8_t segments = 0) const;
    void has_said(const Head& head);
    std::uint64_t next_read(const Fetch& fetch, std::span<iovec, engine::kMaxIov> to,
                            std::size_t& count) const;
    void ask();
    void say_done();
    bool copy_here(const Fetch& fetch, std::uint64_t first, std::uint64_t end);
    bool copy_at_once(Fetch& fetch);
    bool copy_with_peer(Fetch& fetch);
    bool ask_to_push();
    void copy_some();
    bool take_piece(std::uint64_t id, const std::byte* at, std::size_t size);
    bool take_push(std::uint64_t id);
    void push_pieces();
    bool push_piece(Send& send);
    bool take_head(const std::byte* message, Head& head);
    void lose_placed();
    template <class L> Head head_of(Kind kind, std::uint8_t flags, std::uint64_t tag);
    void note_taken(std::uint32_t taken);
    void took(std::uint32_t cost);
    bool owes_credit() const; // so much that it is said by itself
    void let_go(Unexpected& message);
    bool may_announce() const; // one message more
    void one_more_announced();
    void no_longer_announced();
    void lose_announced();
    void owe_done(std::uint64_t id);
    Receive* arrive(bool tagged, std::uint64_t tag);
    bool take_message(const Head& head, bool tagged, const std::byte* at, std::size_t size);
    bool take_plain(Receive& receive, std::uint64_t tag, const std::byte* at, std::size_t size);
    bool take_otherwise(const Head& head, std::uint64_t tag, Receive* receive, const std::byte* at,
                        std::size_t size);
    bool take_announced(const Head& head, const std::byte* at, std::size_t size);
    bool take_done(std::uint64_t id);
    bool take_freed(const Head& head);
    bool take_other(const Head& head, const std::byte* at, std::size_t size);

    Messages& messages_;
    PeerOwner& owner_;
    const std::uint32_t number_;
    std::uint32_t source_ = 0;
    core::DtoStatus arrival_ = core::DtoStatus::success;
    engine::Endpoint* endpoint_ = nullptr; // nullptr: not connected
    engine::LinkKind kind_{};
    static constexpr std::uint32_t kUncounted = UINT32_MAX; // of buffers_: of no device
    std::uint32_t buffers_ = kUncounted; // of the peer, for messages of this side
    std::uint32_t freed_ = 0;            // of this side, which it has not said yet
    bool flowing_ = false;               // connected, and nothing queued
    bool self_ = false;
    bool said_goodbye_ = false;
    bool tells_ = false;       // Completions::tell_of_room() is on
    bool confirmed_ = false;   // both sides have this connection
    bool paused_ = false;      // it may be let go: nothing goes out
    Kind release_{};           // of ask, agree and decline: what is to be said of that; or 0
    bool greets_ = false;      // the first message has to be said
    std::size_t eager_ = 0;    // bytes of a message that is not announced
    std::uint32_t window_ = 0; // these three of what goes to the peer
    std::uint32_t sent_ = 0;
    std::uint32_t told_ = 0;
    std::uint32_t taken_ = 0;      // of what came from it
    std::uint32_t said_taken_ = 0; // as it knows
    std::uint32_t held_ = 0;       // what of that is held
    std::uint32_t announced_ = 0;  // messages of it that are announced, and held
    std::uint32_t unexpected_ = 0; // all that are held, of earlier connections too
    std::uint32_t turn_ = 0;       // connections so far; a message may be held over many
    std::uint32_t reads_ = 0;      // outstanding
    std::uint32_t queued_count_ = 0;
    // A message whose payload comes straight into this receive, which is posted no more; nullptr:
    // there is none.
    Receive* placing_ = nullptr;
    Header placing_head_{};
    base::List<Send, OfPeer> queued_;  // not gone yet
    base::List<Send, OfPeer> waiting_; // for `done`
    base::List<Send, Pushed> pushing_; // in pieces, of those that wait
    base::List<Fetch, OfPeer> to_read_;
    base::List<Fetch, OfPeer> reading_;
    base::List<Fetch, OfPeer> shared_; // that both sides copy
    base::List<Fetch, OfPeer> to_say_;
};

// Those of one endpoint.
class Messages {
  public:
    // The completion flags that stand for things; opaque here.
    struct Flags {
        std::uint64_t message = 0;
        std::uint64_t tagged = 0;
        std::uint64_t with_data = 0;
        std::uint64_t released = 0; // of a receive that stays: it takes no more
    };
    struct Counters {
        core::Counter* send = nullptr;
        core::Counter* receive = nullptr;
    };
    // `zone`: of the memory that is announced, which `registrar` registers; nullptr: no device has
    // to, it is in the domain's table. `many`: announced messages, held of all peers, from
    // which on a peer may have no more than kFewAnnounced. Throws std::bad_alloc.
    Messages(engine::Domain& domain, const void* zone, const Flags& flags,
             std::uint32_t max_receives, std::uint32_t max_sends,
             ReadRegistrar* registrar = nullptr, std::uint64_t many = kManyAnnounced);
    ~Messages(); // no peer is left; what is posted was flushed
    Messages(const Messages&) = delete;
    Messages& operator=(const Messages&) = delete;

    engine::Domain& domain() { return domain_; }
    // What a peer may send before it hears that some was taken.
    std::uint32_t window() const { return window_; }
    // More than kMaxLeft is held whose senders have gone.
    bool is_full_of_left() const { return left_ > kMaxLeft; }
    void set_queues(core::CompletionQueue* sends, core::CompletionQueue* receives) {
        send_cq_ = sends;
        receive_cq_ = receives;
    }
    void set_counters(const Counters& counters) { counters_ = counters; }
    void set_min_multi(std::uint64_t bytes) { min_multi_ = bytes; }

    struct Incoming {
        const engine::Iov* iov;
        std::size_t count;
        std::uint64_t length;
        std::uint64_t tag = 0;
        std::uint64_t ignore = 0;
        std::uint32_t source = core::kAnySource;
        void* context = nullptr;
        bool tagged = false;
        bool reported = true;
        bool stays = false; // one segment, for many messages
    };
    // Inlined, as send_here() of a peer.
    core::PostVerdict receive(const Incoming& in);
    // FI_PEEK: the message that such a receive would take, as a completion; or that there is none.
    // `claimed`: it is taken out, for receive_claimed() or discard(); nullptr where there was none.
    void peek(const Incoming& in, bool discards, Unexpected** claimed);
    core::PostVerdict receive_claimed(Unexpected& message, const Incoming& in);
    void discard_claimed(Unexpected& message, const Incoming& in);
    // Whether it was claimed, and neither received nor discarded; the pointer is compared.
    bool is_claimed(const Unexpected* message);
    // What may be posted beside what there is; of sends, to peers that are not connected or have no
    // room.
    std::size_t receives_left() const { return receives_.left(); }
    std::size_t sends_left() const { return sends_.left(); }
    // The oldest receive with that context; its completion is flushed. False: there is none.
    bool cancel(const void* context);
    // All that is posted is over.
    void flush();

  private:
    friend class Peer;

    // Bytes [offset, ...) of `to` become those of `from`, up to `size` of them. Both have them.
    static void copy(std::span<const engine::Iov> to, std::uint64_t offset,
                     std::span<const engine::Iov> from, std::uint64_t size);
    core::Matching& matching(bool tagged) { return tagged ? tagged_ : untagged_; }
    // Of that peer as it is connected now, with `behind` bytes. nullptr: no memory.
    Unexpected* new_unexpected(Peer& peer, std::uint64_t tag, std::size_t behind);
    void free(Unexpected& message);
    Send* new_send(Peer& peer, const Outgoing& out);
    void free(Send& send);
    Send* send_of(std::uint64_t id);
    // Lets the peer read what is announced. False: that cannot be done now.
    bool add_readable(Send& send);
    void remove_readable(Send& send);

    template <class T> static bool more(Pool<T>& pool, core::CompletionQueue* cq);
    bool more_receives();
    void fill(Receive& receive, const Incoming& in) const;
    void take_held(core::UnexpectedMessage* found, Receive& receive);
    void give(Unexpected& message, Receive& receive);
    void into(Receive& receive, const Peer& peer, std::uint64_t tag, std::uint8_t flags,
              std::uint64_t data, std::span<const engine::Iov> payload, std::uint64_t length);
    // The same where the receive has one segment, takes one message, and has room for it.
    [[gnu::always_inline]] void into_plain(Receive& receive, const Peer& peer, std::uint64_t tag,
                                           const std::byte* payload, std::size_t length) {
        std::byte* const at = receive.iov[0].base;
        if (length > 0) [[likely]] {
            base::copy(at, payload, length);
        }
        receives_.give_back(receive); // its members stay as they are
        if (counters_.receive) [[unlikely]] {
            counters_.receive->add(core::DtoStatus::success);
        }
        if (receive.reported && receive_cq_) [[likely]] {
            receive_cq_->push({receive.context, receive.completion_flags, length, at, 0, tag,
                               peer.arrival(), peer.source()});
        }
    }
    void fetch_into(Receive& receive, Peer& peer, std::uint64_t tag, std::uint8_t flags,
                    std::uint64_t data, std::uint64_t id, std::span<const Place> places);
    void fetched(Fetch& fetch);
    std::byte* take_room(Receive& receive, std::uint64_t length, std::uint64_t& fits);
    void report(Receive& receive, const Peer& peer, std::uint64_t tag, std::uint8_t flags,
                std::uint64_t data, std::byte* at, std::uint64_t length, std::uint64_t placed,
                core::DtoStatus status = core::DtoStatus::success);
    void fail(Receive& receive, core::DtoStatus status);
    void finish(Send& send, core::DtoStatus status);
    void report_send(const Outgoing& out, core::DtoStatus status);
    void drop(Unexpected& message);

    engine::Domain& domain_;
    const void* const zone_;
    ReadRegistrar* const registrar_;
    const Flags flags_;
    const std::uint32_t window_;
    const std::uint32_t untold_ =
        window_ / 2; // more than this is not left unsaid of what was taken
    core::CompletionQueue* send_cq_ = nullptr; // nullptr: not wanted
    core::CompletionQueue* receive_cq_ = nullptr;
    Counters counters_;
    std::uint64_t min_multi_ = 0;
    std::uint64_t left_ = 0; // of connections that have ended: what is held, as held_ of a peer
    std::uint64_t announced_ = 0; // as announced_ of all peers
    const std::uint64_t many_announced_;
    core::Matching tagged_;
    core::Matching untagged_;
    base::List<core::UnexpectedMessage, core::InOrder> claimed_;
    std::vector<Peer*> peers_; // by number
    Pool<Receive> receives_;
    Pool<Send> sends_;
    Pool<Fetch> fetches_;
    // Bytes of an Unexpected and what is behind it: 64 of payload, data and id.
    static constexpr std::size_t kSmall = 144;
    base::Slabs<kSmall> small_;
};

// --- inline: the path of a small message ---

// Of what goes over an L, which it says all of that is due by; a device has no L of its own here.
template <class L> inline Head Peer::head_of(Kind kind, std::uint8_t flags, std::uint64_t tag) {
    std::uint32_t freed = 0;
    if constexpr (std::is_same_v<L, engine::Link>) {
        freed = std::exchange(freed_, 0);
    }
    said_taken_ = taken_;
    return {kind, flags, 0, static_cast<std::uint8_t>(freed), taken_, tag};
}

// It is on its way, or was: `full` and `refused` have changed nothing.
constexpr bool went(core::PostVerdict verdict) {
    return verdict != core::PostVerdict::full && verdict != core::PostVerdict::refused;
}

template <class Post> inline core::PostVerdict Peer::with_buffer(Post&& post) {
    buffers_ -= buffers_ != kUncounted; // before the connection may end within, or be another one
    const core::PostVerdict verdict = post();
    if (!went(verdict)) {
        buffers_ += buffers_ != kUncounted;
    }
    flowing_ = flowing_ && has_buffer();
    return verdict;
}

inline bool Peer::owes_credit() const { return taken_ - said_taken_ > messages_.untold_; }

inline core::PostVerdict Peer::send(const Outgoing& out) {
    if (flowing_ && fits(out)) [[likely]] {
        return send_now(out, nullptr);
    }
    return send_otherwise(out);
}

[[gnu::always_inline]] inline void Messages::fill(Receive& receive, const Incoming& in) const {
    receive.want(in.tag, in.ignore, in.source, in.stays);
    receive.context = in.context;
    receive.completion_flags = in.tagged ? flags_.tagged : flags_.message;
    receive.capacity = in.length;
    receive.used = 0;
    receive.fetching = 0;
    receive.count = static_cast<std::uint8_t>(in.count);
    receive.tagged = in.tagged;
    receive.reported = in.reported;
    receive.over = false;
    receive.iov[0] = in.count > 0 ? in.iov[0] : engine::Iov{nullptr, 0};
    for (std::size_t i = 1; i < in.count; ++i) {
        receive.iov[i] = in.iov[i];
    }
}

[[gnu::always_inline]] inline core::PostVerdict Messages::receive(const Incoming& in) {
    if (receives_.empty() && !more_receives()) [[unlikely]] {
        return core::PostVerdict::full;
    }
    Receive& receive = *receives_.take();
    fill(receive, in);
    if (core::UnexpectedMessage* const found = matching(in.tagged).post(receive)) [[unlikely]] {
        take_held(found, receive);
    }
    return core::PostVerdict::posted;
}

} // namespace dat::rdm

#endif
