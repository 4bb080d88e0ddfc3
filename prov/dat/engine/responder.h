// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What a peer's RDMA read, write or atomic comes to on this side, whatever link has brought it.
// Everything is checked before a byte is answered, or changed (RFC 5040 5.2.2). Under the domain's
// lock.
#ifndef DAT_ENGINE_RESPONDER_H
#define DAT_ENGINE_RESPONDER_H

#include "engine/domain.h"
#include "engine/endpoint.h"
#include "engine/mr_table.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace dat::engine {

struct Permission {
    enum class Denied : std::uint8_t {
        no,
        memory,    // for the reason in `why`
        unaligned, // an atomic has to be
        too_many,  // more than were agreed are outstanding (U-14)
    };
    Denied denied = Denied::no;
    Refusal why = Refusal::none;

    explicit operator bool() const { return denied == Denied::no; }
};

// Where the bytes of a peer's read are, and where those of its write go. Looked up for each piece,
// since the region may have been closed in between. Precondition: `length` is not 0; RFC 5040 5.2:
// of nothing neither key nor address is looked at.
inline Target read_source(Endpoint& endpoint, std::uint32_t key, std::uint64_t address,
                          std::uint64_t length) {
    return endpoint.domain().regions().find(key, address, length, kRemoteRead, endpoint.zone());
}
inline Target write_target(Endpoint& endpoint, std::uint32_t key, std::uint64_t address,
                           std::uint64_t length) {
    return endpoint.domain().regions().find(key, address, length, kRemoteWrite, endpoint.zone());
}

// Of a read. `has_room`: the link can keep one response more.
Permission may_read(Endpoint& endpoint, std::uint32_t key, std::uint64_t address,
                    std::uint64_t length, bool has_room);

// Carries an atomic out if it may be; `before`: what was there.
Permission carry_out(Endpoint& endpoint, OpCode op, const AtomicOperands& with, std::uint32_t key,
                     std::uint64_t address, bool has_room, std::uint64_t& before);

// The responses to reads and atomics that the peer waits for, in its order, and no more of them
// than were agreed (U-14). `sent`: how many the link has sent in all.
template <class Response> class Responses {
  public:
    // How many places it has.
    static constexpr std::size_t places(std::uint16_t agreed) {
        return std::max<std::uint16_t>(agreed, 1);
    }
    // `ring`: places(agreed), the caller's; what is in them is not read before it is written.
    Responses(std::uint16_t agreed, std::span<Response> ring) : agreed_(agreed), ring_(ring) {}

    bool all(std::uint64_t sent) const { return sent == queued_; }
    bool has_room(std::uint64_t sent) const { return queued_ - sent < agreed_; }
    // Precondition: has_room().
    void queue(const Response& response) { ring_[queued_++ % ring_.size()] = response; }
    // The next one. Where all() holds, a place that may never have been written.
    Response& next(std::uint64_t sent) { return ring_[sent % ring_.size()]; }
    const Response& next(std::uint64_t sent) const { return ring_[sent % ring_.size()]; }

  private:
    const std::uint16_t agreed_;
    std::uint64_t queued_ = 0; // in all
    const std::span<Response> ring_;
};

} // namespace dat::engine

#endif
