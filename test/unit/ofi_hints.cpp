// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Hints against the offer, each limit from both sides.
#include "ofi/info.h"

#include <criterion/criterion.h>

#include <rdma/fi_errno.h>

#include <functional>
#include <netinet/in.h>
#include <string>

using namespace dat::ofi;

namespace {

constexpr std::uint32_t kApi = FI_VERSION(1, 17);

// Why hints that `change` has set are refused; "" where they agree.
std::string refusal(const std::function<void(fi_info&)>& change, std::uint32_t api = kApi) {
    const Info hints(fi_allocinfo());
    change(*hints);
    Refusal why;
    return agrees(*hints, api, soft_offering(), why) ? "" : why.what;
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// `value` agrees, one more does not, and the refusal names both numbers.
void limit(const std::function<void(fi_info&, std::size_t)>& set, std::size_t value) {
    cr_assert(refusal([&](fi_info& h) { set(h, value); }).empty());
    const std::string why = refusal([&](fi_info& h) { set(h, value + 1); });
    cr_assert(contains(why, std::to_string(value)), "%s", why.c_str());
    cr_assert(contains(why, std::to_string(value + 1)), "%s", why.c_str());
}

Info offer(const std::function<void(fi_info&)>& change, std::uint32_t api = kApi) {
    const Info hints(fi_allocinfo());
    change(*hints);
    return make_offer(hints.get(), api, soft_offering());
}

} // namespace

Test(ofi_hints, empty__agree) {
    cr_assert(refusal([](fi_info&) {}).empty());
}

Test(ofi_hints, sizes__agree_up_to_the_limit) {
    limit([](fi_info& h, std::size_t v) { h.tx_attr->inject_size = v; }, 128);
    limit([](fi_info& h, std::size_t v) { h.tx_attr->size = v; }, kMaxQueueSize);
    limit([](fi_info& h, std::size_t v) { h.rx_attr->size = v; }, kMaxQueueSize);
    limit([](fi_info& h, std::size_t v) { h.tx_attr->iov_limit = v; }, 4);
    limit([](fi_info& h, std::size_t v) { h.rx_attr->iov_limit = v; }, 4);
    limit([](fi_info& h, std::size_t v) { h.tx_attr->rma_iov_limit = v; }, 4);
    limit([](fi_info& h, std::size_t v) { h.ep_attr->max_msg_size = v; }, kMaxMessageSize);
    limit([](fi_info& h, std::size_t v) { h.domain_attr->cq_data_size = v; }, 8);
    limit([](fi_info& h, std::size_t v) { h.domain_attr->mr_iov_limit = v; }, 1);
    limit([](fi_info& h, std::size_t v) { h.domain_attr->max_err_data = v; }, 508);
    limit([](fi_info& h, std::size_t v) { h.domain_attr->max_ep_srx_ctx = v; }, 1U << 15);
}

// Each remote segment takes a place of the queue.
Test(ofi_hints, remote_segments__are_not_more_than_the_queue_holds) {
    for (const std::size_t size : {1U, 3U, 4U, 5U}) {
        const std::size_t most = size < 4 ? size : 4;
        const auto ask = [size](std::size_t segments) {
            return [=](fi_info& h) {
                h.tx_attr->size = size;
                h.tx_attr->rma_iov_limit = segments;
            };
        };
        cr_assert_eq(offer(ask(0))->tx_attr->rma_iov_limit, most);
        cr_assert(refusal(ask(most)).empty());
        cr_assert(contains(refusal(ask(most + 1)), std::to_string(most)));
    }
    cr_assert_eq(offer([](fi_info&) {})->tx_attr->rma_iov_limit, 4);
}

// As many endpoints share a receive context as there may be.
Test(ofi_hints, endpoints_of_a_shared_context__are_bounded_by_endpoints_alone) {
    const Info answer = offer([](fi_info&) {});
    cr_assert_eq(answer->domain_attr->max_ep_srx_ctx, answer->domain_attr->ep_cnt);
}

// Each bit for itself: programs that ask for the order of atomics ask for these.
Test(ofi_hints, order_of_atomics__is_offered_in_every_direction) {
    for (const std::uint64_t bit :
         {FI_ORDER_ATOMIC_RAR, FI_ORDER_ATOMIC_RAW, FI_ORDER_ATOMIC_WAR, FI_ORDER_ATOMIC_WAW}) {
        cr_assert(refusal([bit](fi_info& h) {
                      h.tx_attr->msg_order = h.rx_attr->msg_order = bit;
                  }).empty());
    }
    cr_assert(contains(refusal([](fi_info& h) { h.tx_attr->msg_order = FI_ORDER_RMA_WAR; }),
                       "FI_ORDER_RMA_WAR"));
}

// What only RDMA has matters only where RDMA is asked for.
Test(ofi_hints, rma_order_sizes__count_with_fi_rma_only) {
    const auto war = [](std::uint64_t caps) {
        return refusal([caps](fi_info& h) {
            h.caps = caps;
            h.ep_attr->max_order_war_size = 9;
        });
    };
    cr_assert(war(FI_MSG).empty());
    cr_assert(contains(war(FI_RMA), "max_order_war_size"));
}

Test(ofi_hints, capabilities_not_built__are_named) {
    cr_assert(contains(refusal([](fi_info& h) { h.caps = FI_MSG | FI_TAGGED; }), "FI_TAGGED"));
    cr_assert(contains(refusal([](fi_info& h) { h.caps = FI_HMEM; }), "FI_HMEM"));
    cr_assert(refusal([](fi_info& h) {
                  h.caps = FI_MSG | FI_RMA | FI_ATOMIC | FI_FENCE | FI_MULTI_RECV | FI_RMA_EVENT |
                           FI_LOCAL_COMM | FI_REMOTE_COMM;
              }).empty());
}

Test(ofi_hints, source_of_another_family_than_the_destination__finds_nothing) {
    const Info hints(fi_allocinfo());
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_addr = in6addr_loopback;
    hints->dest_addr =
        copy_address({reinterpret_cast<const sockaddr*>(&six), sizeof six}, hints->dest_addrlen);
    fi_info* list = nullptr;
    cr_assert_eq(
        getinfo(kApi, "127.0.0.1", nullptr, FI_SOURCE | FI_NUMERICHOST, hints.get(), &list),
        -FI_ENODATA);
    cr_assert_null(list);
}

// Programs and ofi_rxm ask all providers these questions: not worth a warning.
Test(ofi_hints, other_endpoint_types_and_shared_contexts__are_routine_refusals) {
    for (const bool type : {true, false}) {
        const Info hints(fi_allocinfo());
        if (type) {
            hints->ep_attr->type = FI_EP_RDM;
        } else {
            hints->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
        }
        Refusal why;
        cr_assert(!agrees(*hints, kApi, soft_offering(), why));
        cr_assert(why.routine);
    }
    const Info hints(fi_allocinfo());
    hints->tx_attr->inject_size = 4096;
    Refusal why;
    cr_assert(!agrees(*hints, kApi, soft_offering(), why));
    cr_assert(!why.routine);
}

Test(ofi_hints, old_registration_modes__stand_alone) {
    for (const std::uint32_t api : {std::uint32_t{FI_VERSION(1, 0)}, kApi}) {
        for (const int mode : {FI_MR_UNSPEC, FI_MR_BASIC, FI_MR_SCALABLE}) {
            cr_assert(refusal([mode](fi_info& h) { h.domain_attr->mr_mode = mode; }, api).empty());
        }
    }
    cr_assert(
        !refusal([](fi_info& h) { h.domain_attr->mr_mode = FI_MR_BASIC | FI_MR_LOCAL; }).empty());
    cr_assert(!refusal([](fi_info& h) { h.domain_attr->mr_mode = FI_MR_LOCAL; }, FI_VERSION(1, 4))
                   .empty());
}

// A program built before API 1.5 has a shorter domain_attr: nothing of it is read.
Test(ofi_hints, members_of_newer_versions__are_not_looked_at_in_older_ones) {
    const auto change = [](fi_info& h) { h.domain_attr->mr_cnt = SIZE_MAX; };
    cr_assert(!refusal(change, FI_VERSION(1, 5)).empty());
    cr_assert(refusal(change, FI_VERSION(1, 4)).empty());
}

Test(ofi_offer, registration_modes__are_none_or_a_whole_set) {
    const auto mode = [](int hint, std::uint32_t api) {
        return offer([hint](fi_info& h) { h.domain_attr->mr_mode = hint; }, api)
            ->domain_attr->mr_mode;
    };
    cr_assert_eq(mode(0, kApi), 0);
    cr_assert_eq(mode(FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY, kApi), 0);
    cr_assert_eq(mode(FI_MR_BASIC, kApi), FI_MR_BASIC);
    cr_assert_eq(mode(FI_MR_SCALABLE, kApi), FI_MR_SCALABLE);
    cr_assert_eq(mode(FI_MR_UNSPEC, FI_VERSION(1, 4)), FI_MR_SCALABLE);
}

Test(ofi_offer, capabilities__follow_the_hints_with_their_directions) {
    const Info message = offer([](fi_info& h) { h.caps = FI_MSG; });
    cr_assert_eq(message->caps, FI_MSG | FI_SEND | FI_RECV | FI_LOCAL_COMM | FI_REMOTE_COMM);
    cr_assert_eq(message->tx_attr->caps, FI_MSG | FI_SEND);
    cr_assert_eq(message->rx_attr->caps, FI_MSG | FI_RECV);
    const Info target = offer([](fi_info& h) { h.caps = FI_RMA | FI_REMOTE_WRITE; });
    cr_assert_eq(target->caps, FI_RMA | FI_REMOTE_WRITE | FI_LOCAL_COMM | FI_REMOTE_COMM);
    cr_assert_eq(target->rx_attr->caps, FI_RMA | FI_REMOTE_WRITE);
}

Test(ofi_offer, progress__is_as_asked) {
    const Info manual =
        offer([](fi_info& h) { h.domain_attr->data_progress = FI_PROGRESS_MANUAL; });
    cr_assert_eq(manual->domain_attr->data_progress, FI_PROGRESS_MANUAL);
    cr_assert_eq(manual->domain_attr->control_progress, FI_PROGRESS_MANUAL);
    const Info mixed = offer([](fi_info& h) {
        h.domain_attr->data_progress = FI_PROGRESS_MANUAL;
        h.domain_attr->control_progress = FI_PROGRESS_AUTO;
    });
    cr_assert_eq(mixed->domain_attr->control_progress, FI_PROGRESS_AUTO);
    const Info plain = offer([](fi_info&) {});
    cr_assert_eq(plain->domain_attr->data_progress, FI_PROGRESS_AUTO);
    cr_assert_eq(plain->domain_attr->control_progress, FI_PROGRESS_AUTO);
}

// They are not compared with the offer there, but what is offered is what there is.
Test(ofi_offer, rma_order_sizes_without_fi_rma__are_at_most_a_message) {
    const Info message = offer([](fi_info& h) {
        h.caps = FI_MSG;
        h.ep_attr->max_order_raw_size = SIZE_MAX;
        h.ep_attr->max_order_waw_size = SIZE_MAX;
    });
    cr_assert_eq(message->ep_attr->max_order_raw_size, kMaxMessageSize);
    cr_assert_eq(message->ep_attr->max_order_waw_size, kMaxMessageSize);
    Refusal why;
    cr_assert(agrees(*message, kApi, soft_offering(), why), "%s", why.what);
}

// What was offered agrees: programs make the hints of a second call from it.
Test(ofi_offer, as_hints__agrees) {
    const Info first = make_offer(nullptr, kApi, soft_offering());
    Refusal why;
    cr_assert(agrees(*first, kApi, soft_offering(), why), "%s", why.what);
}
