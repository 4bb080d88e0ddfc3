// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Domains and endpoints of an RDMA device that is made up (verbs_fake.h): what there is room for.
#include "links/verbs/device.h"
#include "ofi/domain.h"
#include "ofi/ep.h"
#include "ofi/fabric.h"
#include "ofi/info.h"
#include "verbs_fake.h"

#include <criterion/criterion.h>
#include <netinet/in.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_ext_dat.h>

#include <cstdlib>
#include <cstring>

using namespace dat::ofi;
using fake::state;

namespace {

constexpr std::uint32_t kApi = FI_VERSION(1, 17);

Info device_info() {
    dat::verbs::Device device;
    dat::verbs::describe(&state().shared[0], 1, device);
    Info info = make_offer(nullptr, kApi, offering_of(device));
    std::free(info->domain_attr->name);
    info->domain_attr->name = strdup(device.name.c_str());
    auto* const address = static_cast<sockaddr_in*>(std::calloc(1, sizeof(sockaddr_in)));
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl((10U << 24) + 1);
    std::free(info->src_addr);
    info->src_addr = address;
    info->src_addrlen = sizeof *address;
    return info;
}

struct World {
    World() {
        cr_assert_eq(open_fabric(info->fabric_attr, &fabric, nullptr), 0);
        cr_assert_eq(fi_eq_open(fabric, nullptr, &eq, nullptr), 0);
        cr_assert_eq(fi_domain(fabric, info.get(), &domain, nullptr), 0);
        fi_cq_attr cq_attr{};
        cr_assert_eq(fi_cq_open(domain, &cq_attr, &cq, nullptr), 0);
    }
    ~World() {
        for (fid_t object : {&cq->fid, &domain->fid, &eq->fid, &fabric->fid}) {
            cr_assert_eq(fi_close(object), 0);
        }
    }
    fid_ep* endpoint() {
        fid_ep* ep = nullptr;
        cr_assert_eq(fi_endpoint(domain, info.get(), &ep, nullptr), 0);
        cr_assert_eq(fi_ep_bind(ep, &eq->fid, 0), 0);
        cr_assert_eq(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
        return ep;
    }

    Info info = device_info();
    fid_fabric* fabric = nullptr;
    fid_eq* eq = nullptr;
    fid_domain* domain = nullptr;
    fid_cq* cq = nullptr;
};

// What was asked for is refused while there is no memory for it, and nothing has changed.
void assert_refused_at_first(fid_ep* ep) {
    const auto before = ep_of(ep).engine().limits();
    state().most_queued = 100;
    cr_assert_eq(fi_enable(ep), -FI_ENOMEM);
    cr_assert_eq(ep_of(ep).engine().limits().requests, before.requests);
    cr_assert_eq(fi_send(ep, &before, 1, nullptr, 0, nullptr), -FI_EOPBADSTATE);
    state().most_queued = 10000;
    cr_assert_eq(fi_enable(ep), 0);
    cr_assert_eq(ep_of(ep).engine().limits().receives, before.receives);
    cr_assert_eq(fi_close(&ep->fid), 0);
    cr_assert_eq(state().queues, 0);
}

fi_dat_limits limits_in(const World& world) {
    fi_dat_ops_domain* ops = nullptr;
    cr_assert_eq(fi_open_ops(&world.domain->fid, FI_DAT_DOMAIN_OPS, 0,
                             reinterpret_cast<void**>(&ops), nullptr),
                 0);
    fi_dat_limits limits{};
    cr_assert_eq(ops->query_limits(world.domain, &limits, sizeof limits), 0);
    return limits;
}

} // namespace

Test(ofi_device, endpoint_of_default_sizes__has_fewer_where_there_is_no_memory) {
    World world;
    fid_ep* const ep = world.endpoint();
    state().most_queued = 100;
    cr_assert_eq(fi_enable(ep), 0);
    cr_assert_eq(ep_of(ep).engine().limits().requests, 32);
    cr_assert_eq(ep_of(ep).engine().limits().receives, 32);
    cr_assert_eq(fi_close(&ep->fid), 0);
}

Test(ofi_device, endpoint_of_sizes_of_its_info__is_refused_where_there_is_no_memory) {
    World world;
    world.info->tx_attr->size = 256;
    assert_refused_at_first(world.endpoint());
}

Test(ofi_device, endpoint_of_modified_sizes__is_refused_where_there_is_no_memory) {
    World world;
    fid_ep* const ep = world.endpoint();
    fi_dat_ops_ep* ops = nullptr;
    cr_assert_eq(fi_open_ops(&ep->fid, FI_DAT_EP_OPS, 0, reinterpret_cast<void**>(&ops), nullptr),
                 0);
    fi_dat_ep_attr attr{};
    attr.size = sizeof attr;
    attr.mask = FI_DAT_EP_TX_SIZE;
    attr.tx_size = world.info->tx_attr->size; // as it was, but asked for
    cr_assert_eq(ops->modify(ep, &attr), 0);
    assert_refused_at_first(ep);
}

// max_iov_segments_per_rdma_read of DAT.
Test(ofi_device, limits__tell_the_segments_of_a_read) {
    state().devices[0].transport_type = IBV_TRANSPORT_IWARP;
    state().attr.max_sge_rd = 1;
    World world;
    const fi_dat_limits limits = limits_in(world);
    cr_assert_eq(limits.read_segments, 1);
    cr_assert_gt(world.info->tx_attr->iov_limit, 1);
}

// max_dto_per_ep of DAT, which programs ask 20000 of: what the device has, and no less.
Test(ofi_device, limits__tell_how_many_operations_an_endpoint_has) {
    state().attr.max_qp_wr = 30000;
    state().attr.max_cqe = 1 << 20;
    World world;
    const fi_dat_limits limits = limits_in(world);
    cr_assert_eq(limits.operations,
                 offering_of(domain_of(world.domain).device()->device()).queue_size);
    cr_assert_gt(limits.operations, 20000);
    cr_assert_leq(limits.operations, 30000);
    world.info->tx_attr->size = world.info->rx_attr->size = limits.operations;
    fid_ep* const ep = world.endpoint();
    cr_assert_eq(fi_enable(ep), 0);
    cr_assert_eq(fi_close(&ep->fid), 0);
    world.info->tx_attr->size = limits.operations + 1;
    fid_ep* more = nullptr;
    cr_assert_neq(fi_endpoint(world.domain, world.info.get(), &more, nullptr), 0);
}
