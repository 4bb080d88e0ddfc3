// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The offer of an RDMA device: what the device has, and never more.
#include "ofi/info.h"

#include <criterion/criterion.h>

#include <functional>
#include <string>
#include <utility>

using namespace dat::ofi;

namespace {

constexpr std::uint32_t kApi = FI_VERSION(1, 17);
constexpr int kModes = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;

dat::verbs::Device roce() {
    dat::verbs::Device device;
    device.name = {"rdma0", 1};
    device.atomics = device.immediate = true;
    device.segments = device.read_segments = 3;
    device.operations = 500;
    device.completions = 1500;
    device.reads_in = device.reads_out = 16;
    device.message = 1 << 20;
    return device;
}

dat::verbs::Device iwarp() {
    dat::verbs::Device device = roce();
    device.iwarp = true;
    device.atomics = device.immediate = false;
    return device;
}

std::string refusal(const dat::verbs::Device& device, const std::function<void(fi_info&)>& change) {
    const Info hints(fi_allocinfo());
    hints->domain_attr->mr_mode = kModes;
    change(*hints);
    Refusal why;
    return agrees(*hints, kApi, offering_of(device), why) ? "" : why.what;
}

} // namespace

Test(ofi_device_offer, limits_of_the_device__are_those_of_the_offer) {
    const Offering o = offering_of(roce());
    cr_assert_eq(o.iov_limit, 3);
    cr_assert_lt(o.queue_size, 500); // some are the provider's
    cr_assert_eq(o.message_size, 1 << 20);
    cr_assert_eq(o.limits.reads_in, 16);
    cr_assert_eq(o.limits.reads_out, 16);
    cr_assert_eq(o.limits.zones_share, 0);
    cr_assert_eq(o.limits.read_segments, 3);
    cr_assert(refusal(roce(), [](fi_info& h) { h.tx_attr->iov_limit = 3; }).empty());
    cr_assert_not(refusal(roce(), [](fi_info& h) { h.tx_attr->iov_limit = 4; }).empty());
    cr_assert_not(refusal(roce(), [](fi_info& h) { h.rx_attr->size = 501; }).empty());
}

// Of the sends the offer says nothing less.
Test(ofi_device_offer, segments_of_a_read__are_told_apart) {
    dat::verbs::Device device = iwarp();
    device.read_segments = 1;
    cr_assert_eq(offering_of(device).limits.read_segments, 1);
    cr_assert_eq(offering_of(device).iov_limit, 3);
    device.read_segments = 100;
    cr_assert_eq(offering_of(device).limits.read_segments, 3);
    cr_assert_eq(soft_offering().limits.read_segments, 4);
}

// What a connection has outstanding completes in one queue of the device: requests and its own
// receives, or those of a shared queue.
Test(ofi_device_offer, queues_of_a_connection__fit_into_its_completion_queue) {
    dat::verbs::Device device = roce();
    device.operations = device.shared_receives = 1 << 20;
    for (const std::uint32_t completions : {32767U, 1U << 22, 1000U, 5U}) {
        device.completions = completions;
        const std::size_t offered = offering_of(device).queue_size;
        cr_assert(offered >= 1 && offered <= kMaxQueueSize);
        cr_assert_leq(2 * offered + dat::verbs::kOwnCompletions, completions);
        cr_assert_geq(device.shared_size(), 1);
        cr_assert_leq(offered + device.shared_size() + dat::verbs::kOwnCompletions, completions);
        const auto size = [&](std::size_t tx, std::size_t rx) {
            return refusal(device, [&](fi_info& h) {
                h.tx_attr->size = tx;
                h.rx_attr->size = rx;
            });
        };
        cr_assert(size(offered, offered).empty());
        cr_assert_not(size(offered + 1, 1).empty());
        cr_assert_not(size(1, offered + 1).empty());
    }
    device.completions = 1U << 22;
    cr_assert_eq(offering_of(device).queue_size, kMaxQueueSize);
    device.shared_receives = 0;
    cr_assert_eq(device.shared_size(), 0);
}

// U-63.
Test(ofi_device_offer, private_data__is_what_the_connection_manager_carries) {
    cr_assert_eq(roce().request_data(), 52);
    cr_assert_eq(roce().reply_data(), 192);
    cr_assert_eq(roce().reject_data(), 144);
    cr_assert_leq(iwarp().request_data(), 255);
}

Test(ofi_device_offer, capability_that_the_device_lacks__is_not_offered) {
    cr_assert_not(refusal(iwarp(), [](fi_info& h) { h.caps = FI_ATOMIC; }).empty());
    cr_assert_not(refusal(iwarp(), [](fi_info& h) { h.domain_attr->cq_data_size = 4; }).empty());
    cr_assert(refusal(roce(), [](fi_info& h) {
                  h.mode = FI_RX_CQ_DATA;
                  h.domain_attr->cq_data_size = 4;
              }).empty());
    cr_assert_not(refusal(roce(), [](fi_info& h) { h.domain_attr->cq_data_size = 4; }).empty());
    cr_assert_not(refusal(roce(), [](fi_info& h) {
                      h.mode = FI_RX_CQ_DATA;
                      h.domain_attr->cq_data_size = 5;
                  }).empty());
    for (const auto& device : {roce(), iwarp()}) {
        cr_assert_not(refusal(device, [](fi_info& h) { h.caps = FI_MULTI_RECV; }).empty());
        cr_assert_not(refusal(device, [](fi_info& h) { h.tx_attr->rma_iov_limit = 2; }).empty());
        cr_assert_not(refusal(device, [](fi_info& h) {
                          h.tx_attr->op_flags = FI_DELIVERY_COMPLETE;
                      }).empty());
    }
}

// What was offered can be asked for: programs take it as hints for the other side.
Test(ofi_device_offer, an_offer__is_met_by_the_device_that_made_it) {
    for (const auto& device : {roce(), iwarp()}) {
        const Offering o = offering_of(device);
        for (const std::uint64_t caps : {0ULL, FI_MSG | FI_RMA, 0ULL | FI_MSG}) {
            for (const std::uint64_t mode : {0ULL, FI_RX_CQ_DATA}) {
                const Info hints(fi_allocinfo());
                hints->caps = caps;
                hints->mode = mode;
                hints->domain_attr->mr_mode = kModes;
                const Info offered = make_offer(hints.get(), kApi, o);
                Refusal why;
                cr_assert(agrees(*offered, kApi, o, why), "caps %#llx, mode %#llx: %s",
                          static_cast<unsigned long long>(caps),
                          static_cast<unsigned long long>(mode), why.what);
                cr_assert_eq(offered->mode & ~mode, 0);
            }
        }
        const Info of_nothing = make_offer(nullptr, kApi, o);
        Refusal why;
        cr_assert(agrees(*of_nothing, kApi, o, why), "without hints: %s", why.what);
        cr_assert_eq(of_nothing->domain_attr->cq_data_size, o.data_size);
    }
}

Test(ofi_device_offer, rma__requires_registration_modes_and_messages_none) {
    cr_assert_not(refusal(roce(), [](fi_info& h) {
                      h.caps = FI_RMA;
                      h.domain_attr->mr_mode = 0;
                  }).empty());
    cr_assert(refusal(roce(), [](fi_info& h) {
                  h.caps = FI_MSG;
                  h.domain_attr->mr_mode = 0;
              }).empty());
    cr_assert(refusal(roce(), [](fi_info& h) {
                  h.caps = FI_RMA;
                  h.domain_attr->mr_mode = FI_MR_BASIC;
              }).empty());
    const Info offer = make_offer(nullptr, kApi, offering_of(roce()));
    cr_assert_eq(offer->domain_attr->mr_mode, kModes);
}

// So that what it sends from and receives into is registered once, not for each operation.
Test(ofi_device_offer, registration_of_local_memory__is_asked_of_who_is_ready_for_it) {
    for (const auto& [caps, modes] : {std::pair{FI_MSG, 0}, {FI_MSG | FI_RMA, kModes}}) {
        for (const int local : {0, static_cast<int>(FI_MR_LOCAL)}) {
            const Info hints(fi_allocinfo());
            hints->caps = static_cast<std::uint64_t>(caps);
            hints->domain_attr->mr_mode = modes | local;
            const Info offer = make_offer(hints.get(), kApi, offering_of(roce()));
            cr_assert_eq(offer->domain_attr->mr_mode, modes | local);
            cr_assert_eq(make_offer(hints.get(), kApi, soft_offering())->domain_attr->mr_mode, 0);
        }
    }
}

Test(ofi_device_offer, as_hints__agrees) {
    for (const auto& device : {roce(), iwarp()}) {
        const Info first = make_offer(nullptr, kApi, offering_of(device));
        Refusal why;
        cr_assert(agrees(*first, kApi, offering_of(device), why), "%s", why.what);
    }
}

// A host without devices has no device at any address, and is not slowed down by asking.
Test(ofi_device_offer, loopback__is_on_no_device) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const dat::net::SocketAddress loopback(reinterpret_cast<const sockaddr*>(&address),
                                           sizeof address);
    cr_assert_not(dat::verbs::device_at(loopback).has_value());
    cr_assert(dat::verbs::is_device_name("rdma0/1"));
    cr_assert_not(dat::verbs::is_device_name("eth0"));
}
