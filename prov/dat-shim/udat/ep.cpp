// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Endpoints: all but posting.
#include "dat-shim/ep.h"

#include "dat-shim/evd.h"
#include "dat-shim/service_point.h"
#include "dat-shim/srq.h"
#include "dat-shim/udat/entry.h"

#include <algorithm>
#include <cstring>

namespace dat::shim::udat {
namespace {

EpAttributes from_dat(const DAT_EP_ATTR& attr) {
    EpAttributes to;
    to.service_type = static_cast<std::uint32_t>(attr.service_type);
    to.max_message_size = attr.max_message_size;
    to.max_rdma_size = attr.max_rdma_size;
    to.qos = static_cast<std::uint32_t>(attr.qos);
    to.recv_flags = static_cast<std::uint32_t>(attr.recv_completion_flags);
    to.request_flags = static_cast<std::uint32_t>(attr.request_completion_flags);
    to.max_recv_dtos = attr.max_recv_dtos;
    to.max_request_dtos = attr.max_request_dtos;
    to.max_recv_iov = attr.max_recv_iov;
    to.max_request_iov = attr.max_request_iov;
    to.max_reads_in = attr.max_rdma_read_in;
    to.max_reads_out = attr.max_rdma_read_out;
    to.soft_watermark = attr.srq_soft_hw;
    to.max_read_iov = attr.max_rdma_read_iov;
    to.max_write_iov = attr.max_rdma_write_iov;
    return to;
}

// RDMA has segments of its own since 1.2; programs that know nothing of them leave 0, also
// where the adapter reads into fewer than it sends from.
void default_rdma_segments(const Ia& ia, EpAttributes& attr) {
    if (attr.max_read_iov == 0) {
        attr.max_read_iov = std::min(attr.max_request_iov, ia.can().max_read_segments);
    }
    if (attr.max_write_iov == 0) {
        attr.max_write_iov = attr.max_request_iov;
    }
}

DAT_EP_ATTR to_dat(const EpAttributes& from) {
    DAT_EP_ATTR attr{};
    attr.service_type = static_cast<DAT_SERVICE_TYPE>(from.service_type);
    attr.max_message_size = static_cast<decltype(attr.max_message_size)>(from.max_message_size);
    attr.max_rdma_size = static_cast<decltype(attr.max_rdma_size)>(from.max_rdma_size);
    attr.qos = static_cast<DAT_QOS>(from.qos);
    attr.recv_completion_flags = static_cast<DAT_COMPLETION_FLAGS>(from.recv_flags);
    attr.request_completion_flags = static_cast<DAT_COMPLETION_FLAGS>(from.request_flags);
    attr.max_recv_dtos = from.max_recv_dtos;
    attr.max_request_dtos = from.max_request_dtos;
    attr.max_recv_iov = from.max_recv_iov;
    attr.max_request_iov = from.max_request_iov;
    attr.max_rdma_read_in = from.max_reads_in;
    attr.max_rdma_read_out = from.max_reads_out;
    attr.srq_soft_hw = from.soft_watermark;
    attr.max_rdma_read_iov = from.max_read_iov;
    attr.max_rdma_write_iov = from.max_write_iov;
    return attr;
}

// A handle that may be null.
template <class T> bool find_or_null(DAT_HANDLE handle, T*& object) {
    object = handle ? lookup<T>(handle) : nullptr;
    return object || !handle;
}

// The parts behind handles; an error for the first that is bad.
Return find_parts(DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request,
                  DAT_EVD_HANDLE connect, Ep::Parts& parts) {
    const auto none = [](Return code, DAT_HANDLE handle, const char* kind) {
        return because(code, "%p is no handle of %s", handle, kind);
    };
    if (!find_or_null(pz, parts.pz)) {
        return none(bad_pz(), pz, "a zone");
    }
    if (!find_or_null(recv, parts.recv_evd)) {
        return none(bad_handle(Sub::invalid_handle_evd_recv), recv, "an EVD");
    }
    if (!find_or_null(request, parts.request_evd)) {
        return none(bad_handle(Sub::invalid_handle_evd_request), request, "an EVD");
    }
    if (!find_or_null(connect, parts.connect_evd)) {
        return none(bad_handle(Sub::invalid_handle_evd_conn), connect, "an EVD");
    }
    return kSuccess;
}

Return create(Ia& ia, const Ep::Parts& parts, const DAT_EP_ATTR* attr, DAT_EP_HANDLE* handle) {
    EpAttributes asked;
    if (attr) {
        asked = from_dat(*attr);
        default_rdma_segments(ia, asked);
    }
    Ep* ep = nullptr;
    const Return rc = Ep::create(ia, parts, attr ? &asked : nullptr, ep);
    if (rc == kSuccess) {
        *handle = ep->handle();
    }
    return rc;
}

template <class T> DAT_HANDLE handle_of(const T* object) {
    return object ? object->handle() : DAT_HANDLE_NULL;
}

void query(Ep& ep, DAT_EP_PARAM& param) {
    std::memset(&param, 0, sizeof param);
    const Ep::Parts& parts = ep.parts();
    param.ia_handle = ep.ia().public_handle();
    param.ep_state = static_cast<DAT_EP_STATE>(ep.state());
    param.local_ia_address_ptr = const_cast<sockaddr*>(ep.local_address(param.local_port_qual));
    param.remote_ia_address_ptr = const_cast<sockaddr*>(ep.remote_address(param.remote_port_qual));
    param.pz_handle = handle_of(parts.pz);
    param.recv_evd_handle = handle_of(parts.recv_evd);
    param.request_evd_handle = handle_of(parts.request_evd);
    param.connect_evd_handle = handle_of(parts.connect_evd);
    param.srq_handle = handle_of(parts.srq);
    param.ep_attr = to_dat(ep.attributes());
    add_own(ep, param);
}

// QOS-1, MP-1, U-13. `qos` and `flags` are parameters number 7 and 8 of dat_ep_connect.
Return check_connect(DAT_QOS qos, unsigned qos_argument, DAT_CONNECT_FLAGS flags) {
    constexpr unsigned kQos =
        DAT_QOS_HIGH_THROUGHPUT | DAT_QOS_LOW_LATENCY | DAT_QOS_ECONOMY | DAT_QOS_PREMIUM;
    if ((qos & ~kQos) != 0) {
        return bad_argument(qos_argument);
    }
    if ((bits(flags) & ~kConnectFlags) != 0) {
        return bad_argument(8);
    }
    return qos != DAT_QOS_BEST_EFFORT || (bits(flags) & kConnectFlagsNotOffered) != 0
               ? fail(Type::model_not_supported)
               : kSuccess;
}

} // namespace
} // namespace dat::shim::udat

using namespace dat::shim;
using namespace dat::shim::udat;

extern "C" {

DAT_RETURN dat_ep_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
                         DAT_EVD_HANDLE recv_evd_handle, DAT_EVD_HANDLE request_evd_handle,
                         DAT_EVD_HANDLE connect_evd_handle, const DAT_EP_ATTR* ep_attributes,
                         DAT_EP_HANDLE* ep_handle) {
    return answer([&] {
        Ia* const ia = find_ia(ia_handle);
        if (!ia) {
            return bad_ia();
        }
        Ep::Parts parts;
        if (const Return rc = find_parts(pz_handle, recv_evd_handle, request_evd_handle,
                                         connect_evd_handle, parts)) {
            return rc;
        }
        return ep_handle ? create(*ia, parts, ep_attributes, ep_handle) : bad_argument(7);
    });
}

DAT_RETURN dat_ep_create_with_srq(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
                                  DAT_EVD_HANDLE recv_evd_handle, DAT_EVD_HANDLE request_evd_handle,
                                  DAT_EVD_HANDLE connect_evd_handle, DAT_SRQ_HANDLE srq_handle,
                                  const DAT_EP_ATTR* ep_attributes, DAT_EP_HANDLE* ep_handle) {
    return answer([&] {
        Ia* const ia = find_ia(ia_handle);
        if (!ia) {
            return bad_ia();
        }
        Ep::Parts parts;
        if (const Return rc = find_parts(pz_handle, recv_evd_handle, request_evd_handle,
                                         connect_evd_handle, parts)) {
            return rc;
        }
        parts.srq = lookup<Srq>(srq_handle);
        if (!parts.srq || &parts.srq->ia() != ia) {
            return because(bad_handle(Sub::invalid_handle_srq),
                           "%p is no handle of a shared receive queue of this IA", srq_handle);
        }
        if (!ep_attributes || !ep_handle) { // SRQ-2
            return bad_argument(ep_attributes ? 8 : 7);
        }
        return create(*ia, parts, ep_attributes, ep_handle);
    });
}

DAT_RETURN dat_ep_free(DAT_EP_HANDLE ep_handle) {
    return answer([&] {
        Ep* const ep = lookup<Ep>(ep_handle);
        return ep ? ep->free() : bad_ep();
    });
}

DAT_RETURN dat_ep_query(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask,
                        DAT_EP_PARAM* ep_param) {
    return answer([&] {
        Ep* const ep = lookup<Ep>(ep_handle);
        if (!ep) {
            return bad_ep();
        }
        if ((ep_param_mask & ~DAT_EP_FIELD_ALL) != 0 || !ep_param) {
            return bad_argument(ep_param ? 2 : 3);
        }
        query(*ep, *ep_param);
        return kSuccess;
    });
}

DAT_RETURN dat_ep_modify(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask,
                         const DAT_EP_PARAM* ep_param) {
    return answer([&] {
        Ep* const ep = lookup<Ep>(ep_handle);
        if (!ep) {
            return bad_ep();
        }
        if (!ep_param) {
            return bad_argument(3);
        }
        const auto given = [mask = ep_param_mask](DAT_EP_PARAM_MASK bit, DAT_HANDLE handle) {
            return (mask & bit) != 0 ? handle : DAT_HANDLE_NULL;
        };
        Ep::Parts parts;
        if (const Return rc = find_parts(
                given(DAT_EP_FIELD_PZ_HANDLE, ep_param->pz_handle),
                given(DAT_EP_FIELD_RECV_EVD_HANDLE, ep_param->recv_evd_handle),
                given(DAT_EP_FIELD_REQUEST_EVD_HANDLE, ep_param->request_evd_handle),
                given(DAT_EP_FIELD_CONNECT_EVD_HANDLE, ep_param->connect_evd_handle), parts)) {
            return rc;
        }
        return ep->modify(ep_fields(ep_param_mask), parts, from_dat(ep_param->ep_attr));
    });
}

// EPA-10
DAT_RETURN dat_ep_get_status(DAT_EP_HANDLE ep_handle, DAT_EP_STATE* ep_state,
                             DAT_BOOLEAN* recv_idle, DAT_BOOLEAN* request_idle) {
    return answer([&] {
        Ep* const ep = lookup<Ep>(ep_handle);
        if (!ep) {
            return bad_ep();
        }
        const fi_dat_ep_status status = ep->status();
        if (ep_state) {
            *ep_state = static_cast<DAT_EP_STATE>(status.state);
        }
        if (recv_idle) {
            *recv_idle = status.recv_idle ? DAT_TRUE : DAT_FALSE;
        }
        if (request_idle) {
            *request_idle = status.request_idle ? DAT_TRUE : DAT_FALSE;
        }
        return kSuccess;
    });
}

DAT_RETURN dat_ep_connect(DAT_EP_HANDLE ep_handle, DAT_IA_ADDRESS_PTR ia_address,
                          DAT_CONN_QUAL conn_qual, DAT_TIMEOUT timeout, DAT_COUNT private_data_size,
                          const DAT_PVOID private_data, DAT_QOS qos,
                          DAT_CONNECT_FLAGS connect_flags) {
    return answer([&] {
        Ep* const ep = lookup<Ep>(ep_handle);
        if (!ep) {
            return bad_ep();
        }
        std::span<const std::byte> data;
        if (const Return rc = read_private_data(5, private_data_size, private_data,
                                                ep->ia().can().max_private_data, data)) {
            return rc;
        }
        if (const Return rc = check_connect(qos, 7, connect_flags)) {
            return rc;
        }
        return ep->connect({ia_address, conn_qual, timeout, data});
    });
}

DAT_RETURN dat_ep_dup_connect(DAT_EP_HANDLE ep_handle, DAT_EP_HANDLE ep_dup_handle,
                              DAT_TIMEOUT timeout, DAT_COUNT private_data_size,
                              const DAT_PVOID private_data, DAT_QOS qos) {
    return answer([&] {
        Ep* const ep = lookup<Ep>(ep_handle);
        Ep* const other = lookup<Ep>(ep_dup_handle);
        if (!ep || !other) {
            return bad_ep();
        }
        std::span<const std::byte> data;
        if (const Return rc = read_private_data(4, private_data_size, private_data,
                                                ep->ia().can().max_private_data, data)) {
            return rc;
        }
        if (const Return rc = check_connect(qos, 6, DAT_CONNECT_DEFAULT_FLAG)) {
            return rc;
        }
        return ep->dup_connect(*other, timeout, data);
    });
}

DAT_RETURN dat_ep_disconnect(DAT_EP_HANDLE ep_handle, DAT_CLOSE_FLAGS close_flags) {
    return answer([&] {
        Ep* const ep = lookup<Ep>(ep_handle);
        if (!ep) {
            return bad_ep();
        }
        if (close_flags != DAT_CLOSE_ABRUPT_FLAG && close_flags != DAT_CLOSE_GRACEFUL_FLAG) {
            return bad_argument(2); // EP-20
        }
        return ep->disconnect(close_flags == DAT_CLOSE_GRACEFUL_FLAG);
    });
}

DAT_RETURN dat_ep_reset(DAT_EP_HANDLE ep_handle) {
    return answer([&] {
        Ep* const ep = lookup<Ep>(ep_handle);
        return ep ? ep->reset() : bad_ep();
    });
}

DAT_RETURN dat_ep_recv_query(DAT_EP_HANDLE ep_handle, DAT_COUNT* nbufs_allocated,
                             DAT_COUNT* bufs_alloc_span) {
    return answer([&] {
        Ep* const ep = lookup<Ep>(ep_handle);
        return ep ? ep->recv_query(nbufs_allocated, bufs_alloc_span) : bad_ep();
    });
}

DAT_RETURN dat_ep_set_watermark(DAT_EP_HANDLE ep_handle, DAT_COUNT soft_high_watermark,
                                DAT_COUNT hard_high_watermark) {
    return answer([&] {
        Ep* const ep = lookup<Ep>(ep_handle);
        return ep ? ep->set_watermark(soft_high_watermark, hard_high_watermark) : bad_ep();
    });
}

DAT_SHIM_EXPORT(dat_ep_create);
DAT_SHIM_EXPORT(dat_ep_create_with_srq);
DAT_SHIM_EXPORT(dat_ep_free);
DAT_SHIM_EXPORT(dat_ep_query);
DAT_SHIM_EXPORT(dat_ep_modify);
DAT_SHIM_EXPORT(dat_ep_get_status);
DAT_SHIM_EXPORT(dat_ep_connect);
DAT_SHIM_EXPORT(dat_ep_dup_connect);
DAT_SHIM_EXPORT(dat_ep_disconnect);
DAT_SHIM_EXPORT(dat_ep_reset);
DAT_SHIM_EXPORT(dat_ep_recv_query);
DAT_SHIM_EXPORT(dat_ep_set_watermark);

} // extern "C"
