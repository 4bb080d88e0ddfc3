// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The seam between the endpoint of the software domain and what carries its
// bytes. A Handshake exists while a connection is being made; when it ends well
// it gives the endpoint a Link, which lives until the connection is over. Which
// kind of link it is, is known only then. All calls are made under the domain's
// lock.
#ifndef DAT_ENGINE_LINK_H
#define DAT_ENGINE_LINK_H

#include "base/list.h"
#include "core/completion.h"
#include "engine/half_closed.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <sys/uio.h>

namespace dat::engine {

struct Request;

enum class LinkKind : std::uint8_t { iwarp, shm, verbs, in_process };

// How a connection is let go.
enum class Parting : std::uint8_t {
    clean,   // the peer sees an orderly end, behind what was put off and what is owed
             // (Endpoint::is_owed()); what is owed and never goes out is told of
    broken,  // it sees an end behind what is on its way already
    abandon, // nothing more can or need be sent
};

// What a link can say of itself; all ones: nothing.
struct LinkFacts {
    std::uint64_t retransmissions = ~0ull; // of TCP
    std::uint64_t rtt_us = ~0ull;
};

// The lists of a domain that a link may be in.
struct ToBePushed;
struct AwaitsRoom;

class Link : public core::CompletionQueue::Source,
             public base::Hook<ToBePushed>,
             public base::Hook<AwaitsRoom> {
  public:
    explicit Link(LinkKind kind) : kind_(kind) {}
    virtual ~Link() = default;
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;

    LinkKind kind() const { return kind_; }

    // Why the connection has this link, for those who ask. Takes memory, and does without where
    // there is none.
    void say_why(const char* text) noexcept;
    const char* why() const { return why_ ? why_.get() : ""; }
    // May take a system call.
    virtual void describe(LinkFacts&) const {}

    // Of a link that offers. Not inline, lest a caller expects this one.
    bool give(const core::CompletionQueue& to, core::Success& success) noexcept override;

    // The request has been posted under `seq`; `more`: another follows at once. A path that
    // knows the kind of link calls its own, without a virtual call (engine/post.h).
    virtual void transmit(Request& request, std::uint64_t seq, bool more) = 0;
    // FI_DELIVERY_COMPLETE can be kept (U-61).
    virtual bool confirms_delivery() const = 0;
    // The peer understands what goes beyond RFC 5040.
    virtual bool dat_peer() const = 0;
    // Remote CQ data may have 8 bytes, not 4, and a message or RDMA 4 GiB and more. Only of a
    // dat_peer().
    virtual bool wide() const = 0;
    // An RDMA read would ever go out.
    virtual bool peer_serves_reads() const = 0;

    // Copies all of `from`, addresses in the peer's memory that it has named in a message, to `to`,
    // of the same length, kMaxPieces each at most. Blocks for as long as that takes. False: it
    // cannot be done from here, or the peer's endpoint has parted from the connection meanwhile;
    // `to` is spoiled.
    virtual bool copy_from_peer(std::span<const iovec> /*from*/, std::span<const iovec> /*to*/) {
        return false;
    }
    // It may be done from here.
    virtual bool copies_from_peer() const { return false; }
    // The same bytes would come sooner in messages, since both processors copy then; and the peer
    // polls at this moment, so that it need not be woken to send them.
    virtual bool peer_may_push() const { return false; }

    // ESTABLISHED has been raised: bytes may flow. Called once.
    virtual void start() = 0;
    // Moves what can be moved without blocking. May end the connection.
    virtual void poll() = 0;
    // Sends what transmit() put off. May end the connection.
    virtual void push() = 0;
    // A receive was posted while Endpoint::starved() held, or a completion queue may
    // have room again (Domain::await_room()).
    virtual void receive_posted() = 0;
    // DISC-4: no more requests will come. Once every request has completed and
    // the peer has confirmed delivery, the link raises `drained` (U-42).
    virtual void drain() = 0;
    // The connection is over for the endpoint: the link lets go of every buffer
    // of the application before it returns, and finishes what the wire needs by
    // itself, also what is owed. Requests may succeed meanwhile. No call to the endpoint
    // afterwards; the endpoint retires the link.
    virtual void part(Parting how) = 0;
    // Before part(): what tells this side when the peer has left, or by `left` being false, the
    // peer when this side has (ConnectionOptions::await_peer). nullptr: nothing does.
    virtual std::unique_ptr<HalfClosed> half_close(bool /*left*/) { return nullptr; }

    // Calls of poll() that found nothing, one after the other.
    std::uint32_t idle_polls() const { return idle_polls_; }

  protected:
    std::uint32_t idle_polls_ = 0; // kept by poll()

  private:
    friend class Domain;
    friend class DirectPolling;
    const LinkKind kind_;
    bool polled_directly_ = false;
    std::uint32_t counted_in_ = 0; // turn of DirectPolling
    std::unique_ptr<Link> next_dead_;
    std::unique_ptr<char[]> why_;
};

// A link whose state lies in memory: looking at it costs no system call. While it is
// awake it is polled at each progress; before anybody sleeps on the domain's descriptor
// it is put to sleep, and from then on its peer has to ring.
class MemoryLink : public Link {
  public:
    using Link::Link;

    // Who moves the data is told that it has to ring; then it counts whether this has_news().
    // True: it need not know, nor does that count, before the next heavy_barrier().
    virtual bool arm() = 0;
    // poll() has something to do.
    virtual bool has_news() const = 0;
    // After arm(): it need not ring.
    virtual void disarm() = 0;
    // Behind MemoryPolling::told_nobody(): how much the peer has taken in all, and a ring for what
    // it has not taken by now, since its program may have stopped looking.
    virtual std::uint64_t taken_by_peer() const { return 0; }
    virtual void remind_peer() {}
};

// What says for many links in memory which of them have something. While it is awake it is polled,
// in turn with others where they are many, and so are those links, if it says so.
class Notifier {
  public:
    virtual void poll() = 0;
    // As MemoryLink; it is followed by no barrier of the domain.
    virtual void arm() = 0;
    virtual bool has_news() const = 0;
    virtual void disarm() = 0;
    // Says to the process at the other end on which processor this domain is polled, 1 + its number
    // or 0 for none; and what that has said.
    virtual void say_processor(std::uint32_t) {}
    virtual std::uint32_t peer_processor() const { return 0; }

  protected:
    ~Notifier() = default;
};

class Handshake {
  public:
    virtual ~Handshake() = default;
    Handshake() = default;
    Handshake(const Handshake&) = delete;
    Handshake& operator=(const Handshake&) = delete;

    // The endpoint gives up (disconnect, free, timeout): nothing of this attempt
    // reaches it any more. The endpoint retires the handshake.
    virtual void abandon() = 0;
    // A receive was posted while Endpoint::starved() held.
    virtual void receives_posted() {}

  private:
    friend class Domain;
    std::unique_ptr<Handshake> next_dead_;
};

} // namespace dat::engine

#endif
