// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What a peer's RDMA read or atomic comes to on this side, whatever link has brought it.
// Everything is checked before a byte is answered, or changed (RFC 5040 5.2.2). Under the domain's
// lock.
#ifndef DAT_ENGINE_RESPONDER_H
#define DAT_ENGINE_RESPONDER_H

#include "engine/endpoint.h"
#include "engine/mr_table.h"

#include <cstdint>

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

// Of a read. `has_room`: the link can keep one response more.
Permission may_read(Endpoint& endpoint, std::uint32_t key, std::uint64_t address,
                    std::uint64_t length, bool has_room);

// Carries an atomic out if it may be; `before`: what was there.
Permission carry_out(Endpoint& endpoint, OpCode op, const AtomicOperands& with, std::uint32_t key,
                     std::uint64_t address, bool has_room, std::uint64_t& before);

} // namespace dat::engine

#endif
