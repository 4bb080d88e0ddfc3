// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A segment as a trace has it (FI_DAT_TRACE_FRAMES). Where frames are recorded, none goes the
// fast way.
#ifndef DAT_LINKS_IWARP_TRACE_FRAME_H
#define DAT_LINKS_IWARP_TRACE_FRAME_H

#include "engine/endpoint.h"
#include "engine/trace.h"
#include "links/iwarp/rdmap.h"

#include <cstddef>
#include <cstdint>

namespace dat::iwarp {

inline bool traces_frames(engine::Endpoint& endpoint) {
    return endpoint.trace() && endpoint.trace()->frames();
}

// `payload`: its size. Precondition: traces_frames().
inline void trace_frame(engine::Endpoint& endpoint, bool out, const Segment& segment,
                        std::size_t payload) {
    base::TraceFrame frame{};
    frame.place = segment.tagged ? segment.to : segment.mo;
    frame.length = payload;
    frame.stag = segment.tagged ? segment.stag : 0;
    frame.number = segment.tagged ? 0 : segment.msn;
    frame.link = base::TraceLink::tcp;
    frame.opcode = static_cast<std::uint8_t>(segment.opcode);
    frame.tagged = segment.tagged ? 1 : 0;
    frame.last = segment.last ? 1 : 0;
    endpoint.trace()->frame(out, frame);
}

} // namespace dat::iwarp

#endif
