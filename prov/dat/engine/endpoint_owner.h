// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Who is told what an endpoint does: its owner of the connection, and a sink of its messages, if it
// has one.
#ifndef DAT_ENGINE_ENDPOINT_OWNER_H
#define DAT_ENGINE_ENDPOINT_OWNER_H

#include "core/endpoint.h"
#include "engine/operation.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace dat::engine {

class Link;

// How something arrived; a bit set, from the link.
enum Arrived : std::uint8_t {
    kPlain = 0,
    kWithData = 1,
    kSolicited = 2,
    kInvalidated = 4, // and `data` is the key
    kByWrite = 8,     // a write, not a message
};

// The completion flags that stand for it; opaque here.
struct ArrivalFlags {
    std::uint64_t with_data = 0;
    std::uint64_t solicited = 0;
    std::uint64_t invalidated = 0;
    std::uint64_t by_write = 0; // in place of the receive's own
    std::uint64_t released = 0; // of a `multi` receive: it serves no more
};

// As text, with a zero at the end.
struct EndpointNames {
    std::array<char, 64> local{};
    std::array<char, 64> peer{};
};

// Who an endpoint belongs to. Called under the domain's lock.
class EndpointOwner {
  public:
    // For those who look (Statistics).
    virtual void tell(EndpointNames&) const {}
    virtual const char* words_for(core::Reason) const { return ""; }
    // The link is known: operation tables may be set for its kind. Comes before
    // the ESTABLISHED event.
    virtual void link_ready(Link& link) = 0;
    // Its private data lies there until this returns. An attempt raises two events at most, one of
    // them with data; room for them is there since the attempt began.
    virtual void raise(const core::ConnectionEvent& event) = 0;
    virtual void soft_watermark_passed() {}
    // After the end by this side's disconnect: the peer has left as well
    // (ConnectionOptions::await_peer). Room for it is there.
    virtual void peer_left() {}

  protected:
    ~EndpointOwner() = default;
};

// Takes the messages of an endpoint that has no receives, as they come. Called under the domain's
// lock, in the middle of the link's work: neither posts to the endpoint nor ends its connection.
class MessageSink {
  public:
    // A whole message, which lies there until this returns. Its peer may be changing it meanwhile:
    // what is looked at is copied before. False: it is none that the peer may send; the connection
    // is broken.
    virtual bool arrived(const std::byte* message, std::size_t size) = 0;
    // The memory that such a message lay in can take another one: of a link whose peer has to know
    // how many there are (links/verbs/message_buffers.h).
    virtual void buffer_free() {}
    // Where the payload of a message goes of which not all has come.
    struct Placement {
        std::size_t head = 0; // bytes before the payload; 0: nowhere, it is kept until it is whole
        const Iov* segments = nullptr; // until placed(), or the connection is over
        std::size_t count = 0;
        std::uint64_t capacity = 0; // of all segments
    };
    // The first `size` bytes of such a message, as arrived().
    virtual Placement begins(const std::byte* start, std::size_t size) = 0;
    // The message that began last is whole, `length` bytes of payload, of which those that there
    // was room for are in place.
    virtual void placed(std::uint64_t length) = 0;
    // Bytes from which on begins() knows.
    virtual std::size_t longest_head() const = 0;
    // Bytes of a message, at most.
    virtual std::size_t longest() const = 0;
    // A request with Role::own is over.
    virtual void finished(void* context, core::DtoStatus status) = 0;
    // A request is over, and Completions::tell_of_room() held.
    virtual void has_room() = 0;

  protected:
    ~MessageSink() = default;
};

} // namespace dat::engine

#endif
