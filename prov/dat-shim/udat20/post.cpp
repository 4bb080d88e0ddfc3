// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Posting data transfer operations. May include: dat-shim, dat headers.
#include "dat-shim/ep.h"
#include "dat-shim/udat20/entry.h"

namespace dat::shim::udat20 {
namespace {

DAT_RETURN bad_ep() { return bad_handle(Sub::invalid_handle_ep); }

std::uint32_t flags_of(DAT_COMPLETION_FLAGS flags) { return static_cast<std::uint32_t>(flags); }

} // namespace
} // namespace dat::shim::udat20

using namespace dat::shim;
using namespace dat::shim::udat20;

extern "C" {

DAT_RETURN dat_ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
                            DAT_LMR_TRIPLET* local_iov, DAT_DTO_COOKIE user_cookie,
                            DAT_COMPLETION_FLAGS completion_flags) {
    Ep* const ep = lookup<Ep>(ep_handle);
    return ep ? ep->post_send(num_segments, local_iov, user_cookie.as_64,
                              flags_of(completion_flags))
              : bad_ep();
}

DAT_RETURN dat_ep_post_send_with_invalidate(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
                                            DAT_LMR_TRIPLET* local_iov, DAT_DTO_COOKIE user_cookie,
                                            DAT_COMPLETION_FLAGS completion_flags,
                                            DAT_BOOLEAN invalidate_flag,
                                            DAT_RMR_CONTEXT rmr_context) {
    Ep* const ep = lookup<Ep>(ep_handle);
    if (!ep) {
        return bad_ep();
    }
    const std::uint32_t flags = flags_of(completion_flags);
    return invalidate_flag ? ep->post_send_invalidate(num_segments, local_iov, user_cookie.as_64,
                                                      flags, rmr_context)
                           : ep->post_send(num_segments, local_iov, user_cookie.as_64, flags);
}

DAT_RETURN dat_ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
                            DAT_LMR_TRIPLET* local_iov, DAT_DTO_COOKIE user_cookie,
                            DAT_COMPLETION_FLAGS completion_flags) {
    Ep* const ep = lookup<Ep>(ep_handle);
    return ep ? ep->post_recv(num_segments, local_iov, user_cookie.as_64,
                              flags_of(completion_flags))
              : bad_ep();
}

DAT_RETURN dat_ep_post_rdma_read(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
                                 DAT_LMR_TRIPLET* local_iov, DAT_DTO_COOKIE user_cookie,
                                 const DAT_RMR_TRIPLET* remote_iov,
                                 DAT_COMPLETION_FLAGS completion_flags) {
    Ep* const ep = lookup<Ep>(ep_handle);
    if (!ep) {
        return bad_ep();
    }
    return remote_iov ? ep->post_read(num_segments, local_iov, user_cookie.as_64, *remote_iov,
                                      flags_of(completion_flags))
                      : bad_argument(5);
}

DAT_RETURN dat_ep_post_rdma_write(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
                                  DAT_LMR_TRIPLET* local_iov, DAT_DTO_COOKIE user_cookie,
                                  const DAT_RMR_TRIPLET* remote_iov,
                                  DAT_COMPLETION_FLAGS completion_flags) {
    Ep* const ep = lookup<Ep>(ep_handle);
    if (!ep) {
        return bad_ep();
    }
    return remote_iov ? ep->post_write(num_segments, local_iov, user_cookie.as_64, *remote_iov,
                                       flags_of(completion_flags))
                      : bad_argument(5);
}

DAT_RETURN dat_ep_post_rdma_read_to_rmr(DAT_EP_HANDLE ep_handle, const DAT_RMR_TRIPLET* local_iov,
                                        DAT_DTO_COOKIE user_cookie,
                                        const DAT_RMR_TRIPLET* remote_iov,
                                        DAT_COMPLETION_FLAGS completion_flags) {
    Ep* const ep = lookup<Ep>(ep_handle);
    if (!ep) {
        return bad_ep();
    }
    if (!local_iov || !remote_iov) {
        return bad_argument(local_iov ? 4 : 2);
    }
    DAT_LMR_TRIPLET sink;
    if (const Return rc =
            ep->ia().memory_of_window(local_iov->rmr_context, local_iov->virtual_address,
                                      local_iov->segment_length, sink.lmr_context)) {
        return rc;
    }
    sink.virtual_address = local_iov->virtual_address;
    sink.segment_length = local_iov->segment_length;
    return ep->post_read(1, &sink, user_cookie.as_64, *remote_iov, flags_of(completion_flags));
}

} // extern "C"
