// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See errors.h.
#include "ofi/errors.h"

#include <rdma/fi_ext_dat.h>

#include <cerrno>
#include <cstring>

namespace dat::ofi {

int fi_result(int negative_errno) {
    return negative_errno == -EISCONN ? -FI_EOPBADSTATE : negative_errno;
}

// fi_ext_dat.h has them for programs.
constexpr bool is_known_as(core::DtoStatus status, fi_dat_dto_status known) {
    return static_cast<int>(status) == static_cast<int>(known);
}
static_assert(is_known_as(core::DtoStatus::success, FI_DAT_DTO_SUCCESS) &&
              is_known_as(core::DtoStatus::flushed, FI_DAT_DTO_FLUSHED) &&
              is_known_as(core::DtoStatus::local_length, FI_DAT_DTO_LOCAL_LENGTH) &&
              is_known_as(core::DtoStatus::local_ep, FI_DAT_DTO_LOCAL_EP) &&
              is_known_as(core::DtoStatus::local_protection, FI_DAT_DTO_LOCAL_PROTECTION) &&
              is_known_as(core::DtoStatus::bad_response, FI_DAT_DTO_BAD_RESPONSE) &&
              is_known_as(core::DtoStatus::remote_access, FI_DAT_DTO_REMOTE_ACCESS) &&
              is_known_as(core::DtoStatus::remote_responder, FI_DAT_DTO_REMOTE_RESPONDER) &&
              is_known_as(core::DtoStatus::transport, FI_DAT_DTO_TRANSPORT) &&
              is_known_as(core::DtoStatus::receiver_not_ready, FI_DAT_DTO_RECEIVER_NOT_READY) &&
              is_known_as(core::DtoStatus::partial_packet, FI_DAT_DTO_PARTIAL_PACKET) &&
              is_known_as(core::DtoStatus::rmr_operation_failed, FI_DAT_DTO_RMR_OPERATION_FAILED));

int fi_error(core::DtoStatus status) {
    switch (status) {
    case core::DtoStatus::success:
        return 0;
    case core::DtoStatus::flushed:
        return FI_ECANCELED;
    case core::DtoStatus::local_length:
        return FI_ETRUNC;
    case core::DtoStatus::local_protection:
    case core::DtoStatus::remote_access:
        return FI_EACCES;
    case core::DtoStatus::bad_response:
    case core::DtoStatus::remote_responder:
        return FI_EREMOTEIO;
    case core::DtoStatus::transport:
        return FI_ECONNABORTED;
    case core::DtoStatus::receiver_not_ready:
        return FI_ENORX;
    case core::DtoStatus::no_message:
        return FI_ENOMSG;
    case core::DtoStatus::unknown_source:
        return FI_EADDRNOTAVAIL;
    case core::DtoStatus::local_ep:
    case core::DtoStatus::partial_packet:
    case core::DtoStatus::rmr_operation_failed:
        break;
    }
    return FI_EIO;
}

const char* text(core::DtoStatus status) {
    switch (status) {
    case core::DtoStatus::success:
        return "success";
    case core::DtoStatus::flushed:
        return "flushed: the connection ended before the operation was carried out";
    case core::DtoStatus::local_length:
        return "the message is longer than the receive buffer";
    case core::DtoStatus::local_ep:
        return "the local endpoint failed";
    case core::DtoStatus::local_protection:
        return "local memory may not be used in this way";
    case core::DtoStatus::bad_response:
        return "the peer's response cannot be understood";
    case core::DtoStatus::remote_access:
        return "the peer refused access: key, right or range";
    case core::DtoStatus::remote_responder:
        return "the peer could not carry out the operation";
    case core::DtoStatus::transport:
        return "the connection failed";
    case core::DtoStatus::receiver_not_ready:
        return "the peer had no receive buffer";
    case core::DtoStatus::partial_packet:
        return "only a part of the message arrived";
    case core::DtoStatus::rmr_operation_failed:
        return "the memory window operation failed";
    case core::DtoStatus::no_message:
        return "no message is there that such a receive would take";
    case core::DtoStatus::unknown_source:
        return "the message is there; the address that it came from is not in the address vector";
    }
    return "unknown status";
}

int fi_error(core::Event event) {
    switch (event) {
    case core::Event::peer_rejected:
    case core::Event::non_peer_rejected:
        return FI_ECONNREFUSED;
    case core::Event::timed_out:
        return FI_ETIMEDOUT;
    case core::Event::unreachable:
        return FI_EHOSTUNREACH;
    case core::Event::accept_completion_error:
        return FI_ECONNABORTED;
    case core::Event::none:
    case core::Event::connection_request:
    case core::Event::established:
    case core::Event::disconnected:
    case core::Event::broken:
    case core::Event::recorded:
        break;
    }
    return 0;
}

const char* text(core::Reason reason) {
    switch (reason) {
    case core::Reason::none:
        return "no reason known";
    case core::Reason::local:
        return "this side disconnected";
    case core::Reason::peer_closed:
        return "the peer closed the connection";
    case core::Reason::peer_reset:
        return "the peer's transport was reset";
    case core::Reason::end_in_frame:
        return "the stream ended inside a frame";
    case core::Reason::protocol:
        return "the peer broke the wire protocol";
    case core::Reason::terminate:
        return "the peer sent a Terminate";
    case core::Reason::dto_error:
        return "an operation of this side failed";
    case core::Reason::keepalive:
        return "the peer fell silent";
    case core::Reason::rnr_timeout:
        return "no receive buffer was posted in time (FI_DAT_RNR_TIMEOUT)";
    case core::Reason::handshake_limit:
        return "the handshake did not end in time (FI_DAT_HANDSHAKE_TIMEOUT)";
    case core::Reason::refused:
        return "nobody listens at the peer's address";
    case core::Reason::unreachable:
        return "there is no way to the peer's address";
    case core::Reason::timeout:
        return "the connect timeout expired";
    case core::Reason::rejected:
        return "the peer's application rejected the connection";
    case core::Reason::resources:
        return "this side lacks memory or descriptors, or its device has failed";
    case core::Reason::watermark:
        return "more receives were posted than the hard watermark allows";
    }
    return "unknown reason";
}

const char* give_text(const char* words, char* buf, std::size_t len) {
    if (buf && len > 0) {
        std::strncpy(buf, words, len - 1);
        buf[len - 1] = '\0';
        return buf;
    }
    return words;
}

} // namespace dat::ofi
