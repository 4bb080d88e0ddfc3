// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Posting data transfer operations.
#include "dat-shim/fast.h"
#include "dat-shim/udat/entry.h"

using namespace dat::shim;
using namespace dat::shim::udat;

extern "C" {

DAT_RETURN dat_ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
                            DAT_LMR_TRIPLET* local_iov, DAT_DTO_COOKIE user_cookie,
                            DAT_COMPLETION_FLAGS completion_flags) {
    return answer([&] {
        Ep* const ep = lookup<Ep>(ep_handle);
        return ep ? ep->post_send(num_segments, local_iov, user_cookie.as_64,
                                  bits(completion_flags))
                  : bad_ep();
    });
}

DAT_RETURN dat_ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
                            DAT_LMR_TRIPLET* local_iov, DAT_DTO_COOKIE user_cookie,
                            DAT_COMPLETION_FLAGS completion_flags) {
    return answer([&] {
        Ep* const ep = lookup<Ep>(ep_handle);
        return ep ? ep->post_recv(num_segments, local_iov, user_cookie.as_64,
                                  bits(completion_flags))
                  : bad_ep();
    });
}

DAT_RETURN dat_ep_post_rdma_read(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
                                 DAT_LMR_TRIPLET* local_iov, DAT_DTO_COOKIE user_cookie,
                                 const DAT_RMR_TRIPLET* remote_iov,
                                 DAT_COMPLETION_FLAGS completion_flags) {
    return answer([&] {
        Ep* const ep = lookup<Ep>(ep_handle);
        if (!ep) {
            return bad_ep();
        }
        return remote_iov ? ep->post_read(num_segments, local_iov, user_cookie.as_64,
                                          range_at_peer(*remote_iov), bits(completion_flags))
                          : bad_argument(5);
    });
}

DAT_RETURN dat_ep_post_rdma_write(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
                                  DAT_LMR_TRIPLET* local_iov, DAT_DTO_COOKIE user_cookie,
                                  const DAT_RMR_TRIPLET* remote_iov,
                                  DAT_COMPLETION_FLAGS completion_flags) {
    return answer([&] {
        Ep* const ep = lookup<Ep>(ep_handle);
        if (!ep) [[unlikely]] {
            return bad_ep();
        }
        if (!remote_iov) [[unlikely]] {
            return bad_argument(5);
        }
        return ep->post_write(num_segments, local_iov, user_cookie.as_64,
                              range_at_peer(*remote_iov), bits(completion_flags));
    });
}

DAT_SHIM_EXPORT(dat_ep_post_send);
DAT_SHIM_EXPORT(dat_ep_post_recv);
DAT_SHIM_EXPORT(dat_ep_post_rdma_read);
DAT_SHIM_EXPORT(dat_ep_post_rdma_write);

} // extern "C"
