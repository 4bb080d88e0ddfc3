// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The path of a small message that goes out at once. Inlined always: of a message that is
// described by what the compiler knows, a few stores are left. See messages.h.
#ifndef DAT_RDM_POST_H
#define DAT_RDM_POST_H

#include "engine/post.h"
#include "links/iwarp/link.h"
#include "links/shm/link.h"
#include "rdm/messages.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dat::rdm {

// The head, with what a kind has beside it.
inline std::byte* put_head(std::byte* to, const Head& head, const Outgoing& out,
                           const Send* waiting) {
    to = put(to, head);
    if (out.has_data) {
        to = put(to, out.data);
    }
    return waiting ? put(to, waiting->id) : to;
}

template <class L>
[[gnu::always_inline]] inline core::PostVerdict Peer::post(const Outgoing& out, Send* waiting) {
    if (!room(kReserve)) [[unlikely]] {
        return core::PostVerdict::full;
    }
    engine::Endpoint& endpoint = *endpoint_;
    // Before it is posted: a link that is to be woken polls within, and may hear that it was taken.
    sent_ += cost_of(out.length);
    const core::PostVerdict verdict = engine::post_request<L>(
        endpoint,
        out.more, [&](engine::Request & request, std::uint64_t seq) __attribute__((always_inline)) {
            std::byte* const area = endpoint.inline_area(seq);
            const auto flags = static_cast<std::uint8_t>((out.has_data ? kHasData : 0) |
                                                         (waiting ? kWantsDone : 0));
            std::byte* at = put_head(
                area, head_of<L>(out.tagged ? Kind::tagged : Kind::message, flags, out.tag), out,
                waiting);
            const auto head = static_cast<std::size_t>(at - area);
            // What is known here stands together, and is one store.
            request.op = engine::OpCode::send;
            request.iov_count = 1;
            request.solicited = false;
            request.fence = out.fence;
            request.role = waiting      ? engine::Role::own
                           : out.silent ? engine::Role::silent
                                        : engine::Role::alone;
            request.inlined = true;
            request.has_data = false;
            request.signaled = true;
            if (waiting || !out.reported) [[unlikely]] {
                request.signaled = false;
            }
            request.context = waiting ? static_cast<Posted*>(waiting) : out.context;
            request.completion_flags = out.completion_flags;
            request.length = head + out.length;
            request.remote_address = 0;
            request.remote_key = 0;
            request.ordinal = 0;
            request.data = 0;
            request.level = out.level;
            if (request.length <= engine::kInjectSize) [[likely]] {
                for (std::size_t i = 0; i < out.count; ++i) {
                    if (out.iov[i].length > 0) {
                        std::memcpy(at, out.iov[i].base, out.iov[i].length);
                        at += out.iov[i].length;
                    }
                }
                request.iov = {area, request.length};
                return;
            }
            request.inlined = false;
            engine::Iov* const to =
                engine::set_segments(request, out.count + 1, endpoint.request_extra_segments(seq));
            to[0] = {area, head};
            for (std::size_t i = 0; i < out.count; ++i) {
                to[i + 1] = out.iov[i];
            }
        });
    if (verdict != core::PostVerdict::posted) [[unlikely]] {
        sent_ -= cost_of(out.length);
    }
    return verdict;
}

// As send(), which is the same out of line.
[[gnu::always_inline]] inline core::PostVerdict Peer::send_here(const Outgoing& out) {
    if (flowing_ && fits(out)) [[likely]] {
        if (kind_ == engine::LinkKind::shm) {
            return post<shm::Link>(out, nullptr);
        }
        if (kind_ == engine::LinkKind::iwarp) {
            return post<iwarp::Link>(out, nullptr);
        }
    }
    const Outgoing copy = out; // so that `out` itself need never be in memory
    return send(copy);
}

} // namespace dat::rdm

#endif
