// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The usual write and the usual completion, straight from the entry point to the provider and
// back: no call of libfabric, no entry that is written only to be read. The one file that includes
// the provider: its ofi/direct.h is inlined here.
#ifndef DAT_RPMA_FAST_H
#define DAT_RPMA_FAST_H

#include "ofi/direct.h"

#include <rdma/fi_ext_dat.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace dat::rpma::fast {

// False: posts have to go by the tables of the endpoint (ofi/direct.h).
inline bool is_offered(fid_ep* ep) { return !ofi::direct::watches(ep); }

// fi_writemsg() of one segment of registered memory with FI_TRANSMIT_COMPLETE, and with
// FI_COMPLETION. 0 or -FI_E*.
[[gnu::always_inline]] inline ssize_t write(fid_ep* ep, void* from, std::size_t length,
                                            void* context, std::uint64_t address,
                                            std::uint32_t key) {
    return ofi::direct::write<FI_TRANSMIT_COMPLETE | FI_COMPLETION>(
        ep, from, length, context, [&]() __attribute__((always_inline)) {
            return ofi::direct::Place{address, key};
        });
}

// One that has completed.
struct Done {
    void* context;
    std::uint64_t flags;
    std::size_t length;
    void* buffer;
    std::uint64_t data;
    fi_dat_dto_status status;
};

// At most `most`, failures among them, each for `sink(const Done&)`; how many.
template <class Sink>
[[gnu::always_inline]] inline std::size_t take(fid_cq* cq, std::size_t most, Sink&& sink) {
    return ofi::direct::take_all(cq, most, [&](const core::Completion& done) {
        sink(Done{done.context, done.flags, done.length, done.buffer, done.data,
                  static_cast<fi_dat_dto_status>(done.status)});
    });
}

// The oldest, for `sink(context, flags, length)`, if it is a success without data. The sink is
// copied (ofi/direct.h).
using ofi::direct::Taken;
template <class Sink> [[gnu::always_inline]] inline Taken take_plain(fid_cq* cq, Sink sink) {
    return ofi::direct::take(
        cq, [sink](const ofi::direct::Success& done) __attribute__((always_inline)) {
            if ((done.flags & FI_REMOTE_CQ_DATA) != 0) [[unlikely]] {
                return false;
            }
            sink(done.context, done.flags, done.length);
            return true;
        });
}

} // namespace dat::rpma::fast

#endif
