// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Where each RDMAP opcode belongs, for tests.
#ifndef DAT_TEST_UNIT_WIRE_OPCODES_H
#define DAT_TEST_UNIT_WIRE_OPCODES_H

#include <cstdint>

#include "links/iwarp/rdmap.h"

namespace wire {

using dat::iwarp::Opcode;

// Model and queue of an opcode (RFC 5040 4.2, RFC 7306 4.2).
struct Place {
    Opcode opcode;
    bool standard;
    bool tagged;
    std::uint32_t queue;
};

inline constexpr Place kPlaces[] = {
    {Opcode::rdma_write, true, true, 0},          {Opcode::read_request, true, false, 1},
    {Opcode::read_response, true, true, 0},       {Opcode::send, true, false, 0},
    {Opcode::send_invalidate, true, false, 0},    {Opcode::send_se, true, false, 0},
    {Opcode::send_se_invalidate, true, false, 0}, {Opcode::terminate, true, false, 2},
    {Opcode::immediate, false, false, 0},         {Opcode::immediate_se, false, false, 0},
    {Opcode::atomic_request, false, false, 1},    {Opcode::atomic_response, false, false, 3},
    {Opcode::send_data, false, false, 0},         {Opcode::send_data_se, false, false, 0},
    {Opcode::high_data, false, false, 4},         {Opcode::ack, false, false, 4},
};

} // namespace wire

#endif
