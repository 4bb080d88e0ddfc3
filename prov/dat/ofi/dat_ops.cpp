// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What fi_ext_dat.h offers on an endpoint.
#include "base/log.h"
#include "ofi/ep.h"
#include "ofi/errors.h"
#include "ofi/ours.h"

#include <algorithm>
#include <cstring>

namespace dat::ofi {
namespace {

constexpr bool same(core::Reason ours, fi_dat_reason theirs) {
    return static_cast<int>(ours) == static_cast<int>(theirs);
}
static_assert(same(core::Reason::none, FI_DAT_REASON_NONE) &&
              same(core::Reason::local, FI_DAT_REASON_LOCAL) &&
              same(core::Reason::peer_closed, FI_DAT_REASON_PEER_CLOSED) &&
              same(core::Reason::peer_reset, FI_DAT_REASON_PEER_RESET) &&
              same(core::Reason::end_in_frame, FI_DAT_REASON_END_IN_FRAME) &&
              same(core::Reason::protocol, FI_DAT_REASON_PROTOCOL) &&
              same(core::Reason::terminate, FI_DAT_REASON_TERMINATE) &&
              same(core::Reason::dto_error, FI_DAT_REASON_DTO_ERROR) &&
              same(core::Reason::keepalive, FI_DAT_REASON_KEEPALIVE) &&
              same(core::Reason::rnr_timeout, FI_DAT_REASON_RNR_TIMEOUT) &&
              same(core::Reason::handshake_limit, FI_DAT_REASON_HANDSHAKE_LIMIT) &&
              same(core::Reason::refused, FI_DAT_REASON_REFUSED) &&
              same(core::Reason::unreachable, FI_DAT_REASON_UNREACHABLE) &&
              same(core::Reason::timeout, FI_DAT_REASON_TIMEOUT) &&
              same(core::Reason::rejected, FI_DAT_REASON_REJECTED) &&
              same(core::Reason::resources, FI_DAT_REASON_RESOURCES) &&
              same(core::Reason::watermark, FI_DAT_REASON_WATERMARK));

fi_dat_ep_state public_state(core::State visible) {
    switch (visible) {
    case core::State::unconnected:
    case core::State::destroyed:
    case core::State::provider:
        return FI_DAT_UNCONNECTED;
    case core::State::reserved:
        return FI_DAT_RESERVED;
    case core::State::passive_connection_pending:
        return FI_DAT_PASSIVE_CONNECTION_PENDING;
    case core::State::tentative_connection_pending:
        return FI_DAT_TENTATIVE_CONNECTION_PENDING;
    case core::State::active_connection_pending:
        return FI_DAT_ACTIVE_CONNECTION_PENDING;
    case core::State::completion_pending:
        return FI_DAT_COMPLETION_PENDING;
    case core::State::connected:
        return FI_DAT_CONNECTED;
    case core::State::disconnect_pending:
    case core::State::ending:
        return FI_DAT_DISCONNECT_PENDING;
    case core::State::disconnected:
        break;
    }
    return FI_DAT_DISCONNECTED;
}

fi_dat_end public_end(core::Event end) {
    switch (end) {
    case core::Event::disconnected:
        return FI_DAT_END_DISCONNECTED;
    case core::Event::broken:
        return FI_DAT_END_BROKEN;
    case core::Event::peer_rejected:
        return FI_DAT_END_PEER_REJECTED;
    case core::Event::non_peer_rejected:
        return FI_DAT_END_NON_PEER_REJECTED;
    case core::Event::unreachable:
        return FI_DAT_END_UNREACHABLE;
    case core::Event::timed_out:
        return FI_DAT_END_TIMED_OUT;
    case core::Event::accept_completion_error:
        return FI_DAT_END_ACCEPT_ERROR;
    case core::Event::none:
    case core::Event::connection_request:
    case core::Event::established:
    case core::Event::recorded:
        break;
    }
    return FI_DAT_END_NONE;
}

int status(fid_ep* ep, fi_dat_ep_status* status) {
    *status = ep_of(ep).status();
    return 0;
}

int disconnect(fid_ep* ep, int how) {
    if (how != FI_DAT_ABRUPT && how != FI_DAT_GRACEFUL) {
        DAT_WARN(ep_ctrl,
                 "disconnect(): how = %d; FI_DAT_ABRUPT (0) and FI_DAT_GRACEFUL (1) are "
                 "offered",
                 how);
        return -FI_EINVAL;
    }
    return no_throw([&] { return ep_of(ep).disconnect("disconnect()", how == FI_DAT_GRACEFUL); });
}

int reset(fid_ep* ep) {
    return no_throw([&] { return ep_of(ep).reset(); });
}

int take_request(fid_ep* ep, fid_t request) {
    return no_throw([&] { return ep_of(ep).take_request(request); });
}

int set_connect_timeout(fid_ep* ep, std::uint64_t timeout_us) {
    if (timeout_us == 0) {
        DAT_WARN(ep_ctrl, "set_connect_timeout(): 0 microseconds; at least 1, or "
                          "FI_DAT_TIMEOUT_INFINITE");
        return -FI_EINVAL;
    }
    ep_of(ep).set_connect_timeout(timeout_us);
    return 0;
}

int dup_connect(fid_ep* ep, fid_ep* other, const void* param, std::size_t size) {
    return no_throw([&] { return ep_of(ep).dup_connect(ep_of(other), param, size); });
}

int modify(fid_ep* ep, const fi_dat_ep_attr* attr) {
    return no_throw([&] { return ep_of(ep).modify(*attr); });
}

int bind_window(fid_ep* ep, const fi_dat_bind* given, std::uint64_t* key) {
    fi_dat_bind bind{};
    std::memcpy(&bind, given, std::min(given->size, sizeof bind));
    return no_throw([&] { return ep_of(ep).bind_window(bind, *key); });
}

int recv_query(fid_ep* f, std::uint32_t* allocated, std::uint32_t* span) {
    Endpoint& ep = ep_of(f);
    const engine::BiasedLockOwner in(ep.biased_lock());
    const std::uint32_t count = ep.engine().core().receives().outstanding();
    for (std::uint32_t* out : {allocated, span}) { // in order, so as many may complete
        if (out) {
            *out = count;
        }
    }
    return 0;
}

int set_watermark(fid_ep* f, std::uint32_t soft, std::uint32_t hard) {
    return no_throw([&] {
        Endpoint& ep = ep_of(f);
        const engine::BiasedLockOwner in(ep.biased_lock());
        ep.engine().set_watermarks(soft, hard);
        return 0;
    });
}

int set_patience(fid_ep* f, std::uint64_t patience_us) {
    constexpr std::uint64_t kMost = 60'000'000;
    if (patience_us > kMost) {
        DAT_WARN(ep_ctrl, "set_patience(): %llu us; at most %llu are offered",
                 static_cast<unsigned long long>(patience_us),
                 static_cast<unsigned long long>(kMost));
        return -FI_EINVAL;
    }
    Endpoint& ep = ep_of(f);
    const engine::BiasedLockOwner in(ep.biased_lock());
    ep.engine().connection_options().patience = std::chrono::microseconds(patience_us);
    return 0;
}

int await_peer(fid_ep* f, int on) {
    Endpoint& ep = ep_of(f);
    const engine::BiasedLockOwner in(ep.biased_lock());
    ep.engine().connection_options().await_peer = on != 0;
    return 0;
}

} // namespace

fi_dat_ep_status Endpoint::status() {
    const engine::BiasedLockOwner in(biased_lock());
    const core::Endpoint& core = engine_.core();
    return {
        .state = public_state(core.visible_state()),
        .recv_idle = core.receives().idle() ? 1 : 0,
        .request_idle = core.requests().idle() ? 1 : 0,
        .end = public_end(engine_.last_end().event),
        .reason = static_cast<fi_dat_reason>(engine_.last_end().reason),
        .terminate = engine_.last_end().terminate_code,
    };
}

fi_dat_ops_ep dat_ep_ops = {
    .size = sizeof(fi_dat_ops_ep),
    .status = OfOurs<status>::call,
    .disconnect = OfOurs<disconnect>::call,
    .reset = OfOurs<reset>::call,
    .take_request = OfOurs<take_request>::call,
    .set_connect_timeout = OfOurs<set_connect_timeout>::call,
    .dup_connect = OfOurs<dup_connect>::call,
    .modify = OfOurs<modify>::call,
    .bind_window = OfOurs<bind_window>::call,
    .recv_query = OfOurs<recv_query>::call,
    .set_watermark = OfOurs<set_watermark>::call,
    .set_patience = OfOurs<set_patience>::call,
    .await_peer = OfOurs<await_peer>::call,
};

} // namespace dat::ofi
