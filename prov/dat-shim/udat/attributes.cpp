// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What dat_ia_query tells.
#include "dat-shim/ep.h"
#include "dat-shim/udat/entry.h"

#include <climits>
#include <cstring>
#include <string>

namespace dat::shim::udat {
namespace {

void copy_name(char (&to)[DAT_NAME_MAX_LENGTH], const std::string& name) {
    std::strncpy(to, name.c_str(), sizeof to - 1);
}

void describe_adapter(Ia& ia, DAT_IA_ATTR& attr) {
    std::memset(&attr, 0, sizeof attr);
    copy_name(attr.adapter_name, ia.name());
    copy_name(attr.vendor_name, "dat");
    attr.ia_address_ptr = const_cast<sockaddr*>(ia.address());
    const Abilities& can = ia.can();
    attr.max_eps = 65536;
    attr.max_dto_per_ep = can.max_dtos;
    attr.max_rdma_read_per_ep_in = can.max_reads_in;
    attr.max_rdma_read_per_ep_out = can.max_reads_out;
    attr.max_evds = 65536;
    attr.max_evd_qlen = Limits::kMaxEvdLength;
    attr.max_iov_segments_per_dto = can.max_segments;
    attr.max_lmrs = 1 << 20;
    attr.max_lmr_block_size = Limits::kMaxLength;
    attr.max_lmr_virtual_address = UINT64_MAX;
    attr.max_pzs = INT_MAX;
    attr.max_message_size = can.max_length;
    attr.max_rdma_size = can.max_length;
    attr.max_rmrs = can.windows ? 1 << 20 : 0;
    attr.max_rmr_target_address = UINT64_MAX;
    if (can.shared_receives) {
        attr.max_srqs = 65536;
        attr.max_ep_per_srq = 65536;
        attr.max_recv_per_srq = Limits::kMaxSharedDtos;
    }
    attr.max_iov_segments_per_rdma_read = can.max_read_segments;
    attr.max_iov_segments_per_rdma_write = can.max_segments;
    attr.max_rdma_read_in = INT_MAX;
    attr.max_rdma_read_out = INT_MAX;
    attr.max_rdma_read_per_ep_in_guaranteed = can.device ? DAT_FALSE : DAT_TRUE;
    attr.max_rdma_read_per_ep_out_guaranteed = can.device ? DAT_FALSE : DAT_TRUE;
    attr.num_transport_attr = static_cast<DAT_COUNT>(named_attributes(can).size());
    attr.transport_attr = named_attributes(can).data();
    add_own(can, attr);
}

void describe_provider(const Abilities& can, DAT_PROVIDER_ATTR& attr) {
    std::memset(static_cast<void*>(&attr), 0, sizeof attr);
    copy_name(attr.provider_name, "dat");
    attr.provider_version_major = 2;
    attr.dapl_version_major = DAT_VERSION_MAJOR;
    attr.dapl_version_minor = DAT_VERSION_MINOR;
    attr.lmr_mem_types_supported = static_cast<DAT_MEM_TYPE>(3); // U-21
    attr.iov_ownership_on_return = DAT_IOV_CONSUMER;             // DTO-6
    attr.dat_qos_supported = DAT_QOS_BEST_EFFORT;
    attr.completion_flags_supported = static_cast<DAT_COMPLETION_FLAGS>(
        DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG |
        DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG |
        DAT_COMPLETION_EVD_THRESHOLD_FLAG);
    attr.is_thread_safe = DAT_FALSE; // U-60
    attr.max_private_data_size = static_cast<DAT_COUNT>(can.max_private_data);
    attr.supports_multipath = DAT_FALSE;
    attr.ep_creator = DAT_PSP_CREATES_EP_IFASKED;
    attr.pz_support = DAT_PZ_SHAREABLE;
    attr.optimal_buffer_alignment = DAT_OPTIMAL_ALIGNMENT;
    DAT_BOOLEAN all[6][6];
    for (auto& row : all) {
        for (DAT_BOOLEAN& merged : row) {
            merged = DAT_TRUE;
        }
    }
    std::memcpy(const_cast<DAT_BOOLEAN(*)[6]>(attr.evd_stream_merging_supported), all, sizeof all);
    if (can.shared_receives) {
        attr.srq_supported = DAT_TRUE;
        attr.srq_watermarks_supported = 1;
        attr.srq_ep_pz_difference_supported = can.zones_share ? DAT_TRUE : DAT_FALSE;
        attr.srq_info_supported = 1;
    }
    attr.ep_recv_info_supported = 1;
    attr.lmr_sync_req = DAT_FALSE;
    attr.dto_async_return_guaranteed = DAT_FALSE;
    attr.rdma_write_for_rdma_read_req = DAT_FALSE;
    attr.num_provider_specific_attr = static_cast<DAT_COUNT>(named_attributes(can).size());
    attr.provider_specific_attr = named_attributes(can).data();
    add_own(attr);
}

} // namespace

void describe(Ia& ia, DAT_IA_ATTR* ia_attr, DAT_PROVIDER_ATTR* provider_attr) {
    if (ia_attr) {
        describe_adapter(ia, *ia_attr);
    }
    if (provider_attr) {
        describe_provider(ia.can(), *provider_attr);
    }
}

} // namespace dat::shim::udat
