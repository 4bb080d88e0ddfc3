// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// One binary for libfabric 1.17 and 2.x: what newer programs and libraries pass is read as
// what it is, and nothing is written that older ones have no room for. The values are those
// of libfabric 2.6. That the module is linked to libfabric, and to what versions of its
// functions, is looked at by test/check/symbols.sh.
#include "ofi/domain.h"
#include "ofi/ep.h"
#include "ofi/fabric.h"
#include "ofi/info.h"
#include "ofi/provider.h"
#include "ofi/versions.h"

#include <criterion/criterion.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/providers/fi_prov.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <malloc.h>
#include <string>

using namespace dat::ofi;

namespace {

std::uint32_t g_said_version = 0; // of the library, in place of its own

} // namespace

// The library's, as this program calls it.
extern "C" std::uint32_t fi_version() {
    static const auto own = reinterpret_cast<decltype(&fi_version)>(dlsym(RTLD_NEXT, "fi_version"));
    return g_said_version != 0 ? g_said_version : own();
}

namespace {

constexpr std::uint32_t kOld = FI_VERSION(1, 17);
constexpr std::uint32_t kNew = FI_VERSION(2, 6);

// Enumerators and bits that libfabric 1.17 does not have.
constexpr std::uint32_t kCountBytes = 1; // FI_CNTR_EVENTS_BYTES
constexpr std::uint32_t kFarOff = 0x40000000;
constexpr std::uint64_t kDmabuf = std::uint64_t{1} << 40;
constexpr std::uint64_t kPeer = std::uint64_t{1} << 43;

// As a newer program would: C++ has no such value of the type.
template <class Enumeration> void put(Enumeration& member, std::uint32_t number) {
    std::memcpy(&member, &number, sizeof number);
}

// What `change` makes of the hints agrees with the offer, or why not.
template <class Change> std::string refusal(Change&& change, std::uint32_t version = kNew) {
    const Info hints(fi_allocinfo());
    change(*hints);
    Refusal why;
    return agrees(*hints, version, soft_offering(), why) ? "" : why.what;
}

// As libfabric 1.20 has it: max_ep_auth_key stands where the structure of 1.17 ends.
struct Newer {
    fi_domain_attr old;
    std::size_t max_ep_auth_key;
};

struct Objects {
    Info info;
    fid_fabric* fabric = nullptr;
    fid_domain* domain = nullptr;

    explicit Objects(std::uint32_t version = kNew) {
        fi_info* found = nullptr;
        cr_assert_eq(getinfo(version, "127.0.0.1", nullptr, FI_SOURCE, nullptr, &found), 0);
        info.reset(found);
        cr_assert_eq(open_fabric(info->fabric_attr, &fabric, nullptr), 0);
        cr_assert_eq(fi_domain(fabric, info.get(), &domain, nullptr), 0);
    }
    ~Objects() {
        cr_assert_eq(fi_close(&domain->fid), 0);
        cr_assert_eq(fi_close(&fabric->fid), 0);
    }
};

} // namespace

// A library skips a provider whose version is below the one that a program asks for.
Test(ofi_versions, provider__is_of_the_version_of_the_library_that_runs_it) {
    cr_assert_eq(initialize()->fi_version, fi_version());
}

Test(ofi_versions, programs_of_each_version__get_an_answer_of_theirs) {
    const std::uint32_t versions[] = {FI_VERSION(1, 3), FI_VERSION(1, 5), kOld, kNew};
    for (const std::uint32_t version : versions) {
        fi_info* found = nullptr;
        cr_assert_eq(getinfo(version, nullptr, nullptr, 0, nullptr, &found), 0);
        const Info owner(found);
        cr_assert_eq(found->fabric_attr->api_version, version);
    }
}

// The structures grow: their memory is the library's, and so is their size.
Test(ofi_versions, answers__are_allocated_by_the_library) {
    const Info ours = make_offer(nullptr, kNew, soft_offering());
    const Info theirs(fi_allocinfo());
    const auto room = [](const void* block) {
        return malloc_usable_size(const_cast<void*>(block));
    };
    cr_assert_eq(room(ours.get()), room(theirs.get()));
    cr_assert_eq(room(ours->domain_attr), room(theirs->domain_attr));
    cr_assert_eq(room(ours->ep_attr), room(theirs->ep_attr));
    cr_assert_eq(room(ours->fabric_attr), room(theirs->fabric_attr));
    cr_assert_eq(room(ours->tx_attr), room(theirs->tx_attr));
}

// The oldest form of fi_dupinfo() would lose these.
Test(ofi_versions, copies_of_an_answer__keep_members_of_later_versions) {
    const Info offer = make_offer(nullptr, kOld, soft_offering());
    offer->tx_attr->tclass = FI_TC_LOW_LATENCY;
    const Info copy(fi_dupinfo(offer.get()));
    cr_assert_neq(offer->domain_attr->mr_cnt, 0u);
    cr_assert_eq(copy->domain_attr->mr_cnt, offer->domain_attr->mr_cnt);
    cr_assert_eq(copy->tx_attr->tclass, offer->tx_attr->tclass);
}

// 2.x compares names without looking whether there are any.
Test(ofi_versions, answers__always_have_names) {
    fi_info* found = nullptr;
    cr_assert_eq(getinfo(kNew, nullptr, nullptr, 0, nullptr, &found), 0);
    const Info owner(found);
    for (const fi_info* info = found; info; info = info->next) {
        cr_assert(info->domain_attr->name && info->fabric_attr->name);
    }
}

// The entry has 80 bytes in 1.17 and 88 in 2.x, whose program may lie about its version.
Test(ofi_versions, error_of_a_completion__ends_where_the_oldest_entry_does) {
    Objects o;
    fid_eq* eq = nullptr;
    fid_cq* cq = nullptr;
    fid_ep* ep = nullptr;
    fi_eq_attr eq_attr{};
    fi_cq_attr cq_attr{};
    eq_attr.wait_obj = FI_WAIT_UNSPEC;
    cr_assert_eq(fi_eq_open(o.fabric, &eq_attr, &eq, nullptr), 0);
    cr_assert_eq(fi_cq_open(o.domain, &cq_attr, &cq, nullptr), 0);
    cr_assert_eq(fi_endpoint(o.domain, o.info.get(), &ep, nullptr), 0);
    cr_assert_eq(fi_ep_bind(ep, &eq->fid, 0), 0);
    cr_assert_eq(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
    cr_assert_eq(fi_enable(ep), 0);
    char buffer[8];
    cr_assert_eq(fi_recv(ep, buffer, sizeof buffer, nullptr, 0, buffer), 0);
    cr_assert_eq(fi_close(&ep->fid), 0);

    alignas(fi_cq_err_entry) std::array<unsigned char, kErrorEntrySize + 64> room;
    room.fill(0xa5);
    auto* entry = reinterpret_cast<fi_cq_err_entry*>(room.data());
    entry->err_data_size = 0;
    cr_assert_eq(fi_cq_readerr(cq, entry, 0), 1);
    cr_assert_eq(entry->err, FI_ECANCELED);
    for (std::size_t i = kErrorEntrySize; i < room.size(); ++i) {
        cr_assert_eq(room[i], 0xa5, "byte %zu was written", i);
    }
    cr_assert_eq(fi_close(&cq->fid), 0);
    cr_assert_eq(fi_close(&eq->fid), 0);
}

// With FI_MR_DMABUF the vector of segments is another structure.
Test(ofi_versions, dmabuf_region__is_refused_before_its_vector_is_read) {
    Objects o;
    fi_mr_attr attr{};
    attr.mr_iov = reinterpret_cast<const iovec*>(std::uintptr_t{8});
    attr.iov_count = 1;
    attr.access = FI_REMOTE_READ;
    fid_mr* mr = nullptr;
    cr_assert_eq(fi_mr_regattr(o.domain, &attr, kDmabuf, &mr), -FI_EBADFLAGS);
    cr_assert_null(mr);
}

// Bits that had a meaning in 1.17 mean something else now: FI_TAGGED_DIRECTED_RECV,
// FI_TAGGED_MULTI_RECV, FI_EXACT_DIRECTED_RECV; and FI_PEER is new.
Test(ofi_versions, capabilities_of_reused_bits__are_refused) {
    for (const int bit : {43, 45, 46, 48}) {
        const std::string why = refusal([&](fi_info& h) { h.caps = std::uint64_t{1} << bit; });
        cr_assert(why.find("caps") == 0, "bit %d: %s", bit, why.c_str());
    }
}

Test(ofi_versions, unknown_enumerators_in_hints__are_refused_by_number) {
    const auto names = [](const std::string& why, std::uint32_t number) {
        return why.find(std::to_string(number)) != std::string::npos;
    };
    for (const std::uint32_t number : {kControlUnified + 1, kFarOff}) {
        cr_assert(names(refusal([&](fi_info& h) { put(h.domain_attr->control_progress, number); }),
                        number));
        cr_assert(
            names(refusal([&](fi_info& h) { put(h.domain_attr->data_progress, number); }), number));
    }
    cr_assert(names(refusal([](fi_info& h) { put(h.domain_attr->threading, kFarOff); }), kFarOff));
    cr_assert(names(refusal([](fi_info& h) { h.addr_format = kFarOff; }), kFarOff));
    cr_assert(!refusal([](fi_info& h) { put(h.ep_attr->type, kFarOff); }).empty());
}

// 2.x has one member for both, where the older one for data was.
Test(ofi_versions, unified_progress__is_agreed_to_and_is_manual) {
    for (const bool in_data : {true, false}) {
        const auto ask = [in_data](fi_info& h) {
            fi_domain_attr& domain = *h.domain_attr;
            put(in_data ? domain.data_progress : domain.control_progress, kControlUnified);
        };
        cr_assert(refusal(ask).empty(), "%s", refusal(ask).c_str());
        fi_info* found = nullptr;
        const Info hints(fi_allocinfo());
        ask(*hints);
        cr_assert_eq(getinfo(kNew, "127.0.0.1", nullptr, FI_SOURCE, hints.get(), &found), 0);
        const Info info(found);
        cr_assert_eq(number_of(info->domain_attr->data_progress), kControlUnified);
        cr_assert_eq(number_of(info->domain_attr->control_progress), kControlUnified);
        fid_fabric* fabric = nullptr;
        fid_domain* domain = nullptr;
        cr_assert_eq(open_fabric(info->fabric_attr, &fabric, nullptr), 0);
        cr_assert_eq(fi_domain(fabric, info.get(), &domain, nullptr), 0);
        // Who waits waits for everything, as no thread does.
        cr_assert_eq(domain_of(domain).wait_fd(), domain_of(domain).engine().wait_fd());
        cr_assert_eq(fi_close(&domain->fid), 0);
        cr_assert_eq(fi_close(&fabric->fid), 0);
    }
}

// An endpoint with a connection has one authorization key, and max_ep_auth_key is of others.
Test(ofi_versions, keys_of_an_endpoint_without_connection__are_read_of_newer_programs_alone) {
    Newer newer{};
    newer.max_ep_auth_key = 3;
    cr_assert_eq(keys_of_endpoint(newer.old, FI_VERSION(1, 19)), 0u);
    cr_assert_eq(keys_of_endpoint(newer.old, FI_VERSION(1, 20)), 3u);
    cr_assert_eq(keys_of_endpoint(newer.old, kNew), 3u);
}

// Also the library has to be a newer one, which then says so of itself.
Test(ofi_versions, keys_of_an_endpoint_without_connection__are_refused) {
    const auto with_keys = [](std::size_t keys, std::uint32_t version) {
        return refusal(
            [keys](fi_info& hints) {
                auto* const newer = static_cast<Newer*>(std::calloc(1, sizeof(Newer)));
                newer->max_ep_auth_key = keys;
                std::free(hints.domain_attr);
                hints.domain_attr = &newer->old;
            },
            version);
    };
    cr_assert(with_keys(3, kNew).empty());
    g_said_version = kNew;
    cr_assert(with_keys(0, kNew).empty());
    cr_assert(with_keys(3, FI_VERSION(1, 19)).empty());
    const std::string why = with_keys(3, kNew);
    cr_assert(why.find("max_ep_auth_key = 3") != std::string::npos, "%s", why.c_str());
}

Test(ofi_versions, unknown_enumerators_of_queues_and_counters__are_refused) {
    Objects o;
    fid_cq* cq = nullptr;
    fi_cq_attr cq_attr{};
    put(cq_attr.format, kFarOff);
    cr_assert_eq(fi_cq_open(o.domain, &cq_attr, &cq, nullptr), -FI_ENOSYS);
    cq_attr = {};
    put(cq_attr.wait_obj, kFarOff);
    cr_assert_eq(fi_cq_open(o.domain, &cq_attr, &cq, nullptr), -FI_ENOSYS);
    cq_attr = {};
    cq_attr.flags = kPeer; // its context would be a queue of another provider
    cr_assert_eq(fi_cq_open(o.domain, &cq_attr, &cq, nullptr), -FI_ENOSYS);
    cr_assert_null(cq);

    fid_eq* eq = nullptr;
    fi_eq_attr eq_attr{};
    put(eq_attr.wait_obj, kFarOff);
    cr_assert_eq(fi_eq_open(o.fabric, &eq_attr, &eq, nullptr), -FI_ENOSYS);
    cr_assert_null(eq);

    fid_cntr* cntr = nullptr;
    for (const std::uint32_t number : {kCountBytes, kFarOff}) {
        fi_cntr_attr cntr_attr{};
        put(cntr_attr.events, number);
        cr_assert_eq(fi_cntr_open(o.domain, &cntr_attr, &cntr, nullptr), -FI_ENOSYS);
    }
    cr_assert_null(cntr);
}

// FI_GET_FD, FI_OPT_MAX_MSG_SIZE and what may come behind them.
Test(ofi_versions, unknown_controls_and_options__are_said_not_to_be_there) {
    Objects o;
    fid_ep* ep = nullptr;
    cr_assert_eq(fi_endpoint(o.domain, o.info.get(), &ep, nullptr), 0);
    std::size_t value = 0;
    std::size_t size = sizeof value;
    for (const int name : {100, 1000}) {
        cr_assert_eq(fi_control(&ep->fid, name, &value), -FI_ENOSYS);
        cr_assert_eq(fi_getopt(&ep->fid, FI_OPT_ENDPOINT, name, &value, &size), -FI_ENOPROTOOPT);
        cr_assert_eq(fi_setopt(&ep->fid, FI_OPT_ENDPOINT, name, &value, size), -FI_ENOPROTOOPT);
    }
    cr_assert_eq(fi_close(&ep->fid), 0);
}

// Tables say how long they are, so that a newer library can tell what an older provider
// lacks; a newer one's are longer.
Test(ofi_versions, tables__say_how_long_they_are) {
    Objects o;
    cr_assert_eq(o.fabric->fid.ops->size, sizeof(fi_ops));
    cr_assert_eq(o.fabric->ops->size, sizeof(fi_ops_fabric));
    cr_assert_eq(o.domain->ops->size, sizeof(fi_ops_domain));
    cr_assert_eq(o.domain->mr->size, sizeof(fi_ops_mr));
}

// Every combination of what hints mostly differ in: no answer has less than was asked for.
Test(ofi_combinations, of_hints__are_met_whole_or_not_at_all) {
    const std::uint64_t caps[] = {
        0, FI_MSG, FI_RMA, FI_MSG | FI_RMA, FI_MSG | FI_ATOMIC, FI_MSG | FI_TAGGED};
    const int modes[] = {0, kMrBasic, kMrScalable, FI_MR_LOCAL,
                         FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY};
    const fi_threading threads[] = {FI_THREAD_UNSPEC, FI_THREAD_SAFE,       FI_THREAD_FID,
                                    FI_THREAD_DOMAIN, FI_THREAD_COMPLETION, FI_THREAD_ENDPOINT};
    const fi_progress progresses[] = {FI_PROGRESS_UNSPEC, FI_PROGRESS_AUTO, FI_PROGRESS_MANUAL};
    const fi_resource_mgmt managements[] = {FI_RM_UNSPEC, FI_RM_DISABLED, FI_RM_ENABLED};
    const std::uint64_t orders[] = {0, FI_ORDER_SAS, FI_ORDER_RAW | FI_ORDER_WAW};
    int met = 0;
    for (const std::uint64_t cap : caps)
        for (const int mode : modes)
            for (const fi_threading threading : threads)
                for (const fi_progress progress : progresses)
                    for (const fi_resource_mgmt management : managements)
                        for (const std::uint64_t order : orders) {
                            const Info hints(fi_allocinfo());
                            hints->caps = cap;
                            hints->domain_attr->mr_mode = mode;
                            hints->domain_attr->threading = threading;
                            hints->domain_attr->data_progress = progress;
                            hints->domain_attr->resource_mgmt = management;
                            hints->tx_attr->msg_order = order;
                            hints->rx_attr->msg_order = order;
                            Refusal why;
                            cr_assert_eq(agrees(*hints, kOld, soft_offering(), why),
                                         (cap & FI_TAGGED) == 0);
                            if ((cap & FI_TAGGED) != 0)
                                continue;
                            const Info offer = make_offer(hints.get(), kOld, soft_offering());
                            ++met;
                            cr_assert_eq(offer->caps & cap, cap);
                            cr_assert_eq(offer->mode, 0u);
                            cr_assert_eq(offer->tx_attr->msg_order & order, order);
                            cr_assert_eq(offer->rx_attr->msg_order & order, order);
                            const fi_domain_attr& domain = *offer->domain_attr;
                            cr_assert(threading == FI_THREAD_UNSPEC ||
                                      domain.threading == threading);
                            cr_assert(progress == FI_PROGRESS_UNSPEC ||
                                      domain.data_progress == progress);
                            cr_assert_eq(domain.resource_mgmt, FI_RM_ENABLED);
                            // Nothing more is demanded than the program is ready for.
                            cr_assert_eq(domain.mr_mode & ~mode, 0);
                        }
    cr_assert_eq(met, 5 * 5 * 6 * 3 * 3 * 3);
}
