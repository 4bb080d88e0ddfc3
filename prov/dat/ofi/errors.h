// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The one mapping from what the layers below say to FI_E*, and the words for
// it.
#ifndef DAT_OFI_ERRORS_H
#define DAT_OFI_ERRORS_H

#include "core/completion.h"
#include "core/endpoint.h"

#include <rdma/fi_errno.h>

#include <cstddef>
#include <new>
#include <utility>

namespace dat::ofi {

// What a posting call returns.
inline int fi_result(core::PostVerdict verdict) {
    switch (verdict) {
    case core::PostVerdict::posted:
    case core::PostVerdict::flushed:
        return 0;
    case core::PostVerdict::full:
        return -FI_EAGAIN;
    case core::PostVerdict::refused:
        break;
    }
    return -FI_EOPBADSTATE;
}

// What a call returns where a layer below returned 0 or -errno (errno values are
// libfabric's, but for the one that stands for a refusing state).
int fi_result(int negative_errno);

// fi_cq_err_entry.err; prov_errno is the status itself. 0 for success.
int fi_error(core::DtoStatus status);
const char* text(core::DtoStatus status);

// fi_eq_err_entry.err for an ending that is reported as an error, 0 for the ones
// that are FI_SHUTDOWN and for what is no ending; prov_errno is the reason.
int fi_error(core::Event event);
const char* text(core::Reason reason);

// The answer of fi_*_strerror(): `words`, copied to `buf` where there is one.
const char* give_text(const char* words, char* buf, std::size_t len);

// Runs `body` behind the C interface: no memory is an error like any other.
template <class Body> int no_throw(Body&& body) noexcept {
    try {
        return std::forward<Body>(body)();
    } catch (const std::bad_alloc&) {
        return -FI_ENOMEM;
    }
}

} // namespace dat::ofi

#endif
