// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See responder.h.
#include "engine/responder.h"

#include "engine/atomics.h"

namespace dat::engine {

namespace {

Permission denied_for(Refusal why) { return {Permission::Denied::memory, why}; }

} // namespace

Permission may_read(Endpoint& endpoint, std::uint32_t key, std::uint64_t address,
                    std::uint64_t length, bool has_room) {
    if (length > 0) {
        const Target target = read_source(endpoint, key, address, length);
        if (!target.at) {
            return denied_for(target.why);
        }
    }
    return {has_room ? Permission::Denied::no : Permission::Denied::too_many, Refusal::none};
}

Permission carry_out(Endpoint& endpoint, OpCode op, const AtomicOperands& with, std::uint32_t key,
                     std::uint64_t address, bool has_room, std::uint64_t& before) {
    const Target target = endpoint.domain().regions().find(
        key, address, sizeof before, kRemoteRead | kRemoteWrite, endpoint.zone());
    if (!target.at) {
        return denied_for(target.why);
    }
    if (reinterpret_cast<std::uintptr_t>(target.at) % sizeof before != 0) {
        return {Permission::Denied::unaligned, Refusal::none};
    }
    if (!has_room) { // before the memory changes
        return {Permission::Denied::too_many, Refusal::none};
    }
    before = carry_out(op, with, target.at);
    return {};
}

} // namespace dat::engine
