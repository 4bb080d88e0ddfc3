// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite: fi_getinfo() and what objects answer to calls that are not
// there.
#include "suite.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_tagged.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstdlib>
#include <cstring>

using namespace dat::test;

namespace {

constexpr std::uint32_t kApi = FI_VERSION(1, 17);

struct Answer {
    int result;
    Info info;
    const fi_info* operator->() const { return info.get(); }
};

Answer ask(const fi_info* hints, const char* node = nullptr, const char* service = nullptr,
           std::uint64_t flags = 0) {
    fi_info* info = nullptr;
    const int result = fi_getinfo(kApi, node, service, flags, hints, &info);
    return {result, Info(info)};
}

std::string text_of(const void* address) {
    char text[INET6_ADDRSTRLEN] = "";
    if (static_cast<const sockaddr*>(address)->sa_family == AF_INET)
        inet_ntop(AF_INET, &static_cast<const sockaddr_in*>(address)->sin_addr, text, sizeof text);
    else
        inet_ntop(AF_INET6, &static_cast<const sockaddr_in6*>(address)->sin6_addr, text,
                  sizeof text);
    return text;
}

bool is_wildcard(const void* address) {
    const std::string text = text_of(address);
    return text == "0.0.0.0" || text == "::";
}

// libfabric's own flag (ofi_rxm passes it): no provider on top of another.
constexpr std::uint64_t kCoreProvidersOnly = 1ULL << 59;

// A hint that `dat` cannot meet: no entry, and FI_ENODATA, nothing else.
void require_no_data(const Info& hints) {
    const Answer answer = ask(hints.get(), nullptr, nullptr, kCoreProvidersOnly);
    cr_assert_eq(answer.result, -FI_ENODATA, "got %d", answer.result);
}

} // namespace

TRANSPORT_TEST(info_default, every_entry__is_a_complete_msg_endpoint) {
    const Info hints = hints_for(transport);
    const Answer answer = ask(hints.get());
    cr_assert_eq(answer.result, 0, "got %d", answer.result);
    int seen = 0;
    for (const fi_info* info = answer.info.get(); info; info = info->next, ++seen) {
        cr_assert_str_eq(info->fabric_attr->prov_name, provider());
        cr_assert(info->fabric_attr->name && *info->fabric_attr->name);
        cr_assert(info->domain_attr->name && *info->domain_attr->name);
        cr_assert_eq(info->ep_attr->type, FI_EP_MSG);
        if (is_dat())
            cr_assert_eq(info->addr_format, hints->addr_format);
        cr_assert((info->caps & (FI_MSG | FI_RMA)) == (FI_MSG | FI_RMA));
        cr_assert_eq(info->mode, 0);
        cr_assert_gt(info->tx_attr->size, 0);
        cr_assert_gt(info->rx_attr->size, 0);
        cr_assert_gt(info->ep_attr->max_msg_size, 0);
        cr_assert(info->src_addr && info->src_addrlen);
        cr_assert(!is_wildcard(info->src_addr), "rxm needs a specific address");
        cr_assert(fi_tostr(info, FI_TYPE_INFO));
    }
    cr_assert_gt(seen, 0);
}

// FI_DAT_IFACE, whether or not a node is given.
TRANSPORT_TEST(info_interface, named_by_the_environment__is_the_only_one) {
    only_dat();
    setenv("FI_DAT_IFACE", "lo", 1);
    const Info hints = hints_for(transport);
    for (const char* node : {static_cast<const char*>(nullptr), transport.address}) {
        const Answer answer = ask(hints.get(), node, "7");
        cr_assert_eq(answer.result, 0, "got %d", answer.result);
        for (const fi_info* info = answer.info.get(); info; info = info->next) {
            cr_assert_str_eq(info->domain_attr->name, "lo");
        }
    }
}

TRANSPORT_TEST(info_interface, that_does_not_exist__offers_nothing) {
    only_dat();
    setenv("FI_DAT_IFACE", "nonesuch", 1);
    const Info hints = hints_for(transport);
    for (const std::uint64_t flags : {std::uint64_t{0}, std::uint64_t{FI_SOURCE}}) {
        cr_assert_eq(ask(hints.get(), transport.address, "7", flags).result, -FI_ENODATA);
    }
    cr_assert_eq(ask(hints.get()).result, -FI_ENODATA);
}

// What ofi_rxm and Open MPI look for although nobody asked.
TRANSPORT_TEST(info_default, caps__have_both_local_and_remote_communication) {
    only_dat();
    const Info hints = hints_for(transport);
    const Answer answer = ask(hints.get());
    cr_assert_eq(answer.result, 0);
    constexpr std::uint64_t kBoth = FI_LOCAL_COMM | FI_REMOTE_COMM;
    cr_assert_eq(answer->caps & kBoth, kBoth);
    cr_assert_eq(answer->domain_attr->caps & kBoth, kBoth);
}

TRANSPORT_TEST(info_default, limits__are_what_is_documented) {
    only_dat();
    const Info hints = hints_for(transport);
    const Answer answer = ask(hints.get());
    cr_assert_eq(answer.result, 0);
    cr_assert_geq(answer->tx_attr->iov_limit, 4);
    cr_assert_geq(answer->rx_attr->iov_limit, 4);
    cr_assert_geq(answer->tx_attr->rma_iov_limit, 1);
    cr_assert_geq(answer->tx_attr->inject_size, 128);
    cr_assert_geq(answer->domain_attr->mr_key_size, 4);
    const int needed = hints->domain_attr->mr_mode; // of a device
    cr_assert_eq(answer->domain_attr->mr_mode, transport.device ? needed : 0);
}

// The hints of ofi_rxm, as measured.
TRANSPORT_TEST(info_rxm, its_hints__are_met_with_sizes_kept) {
    only_dat();
    const Info hints = hints_for(transport);
    hints->caps = FI_MSG | FI_RMA | FI_SEND | FI_RECV | FI_READ | FI_REMOTE_READ | FI_REMOTE_WRITE;
    hints->mode = FI_CONTEXT | FI_RX_CQ_DATA;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->tx_attr->size = 128;
    hints->rx_attr->size = 128;
    hints->tx_attr->msg_order = FI_ORDER_SAS;
    const Answer answer = ask(hints.get(), nullptr, nullptr, kCoreProvidersOnly);
    cr_assert_eq(answer.result, 0, "got %d", answer.result);
    cr_assert_geq(answer->tx_attr->size, 128);
    cr_assert_geq(answer->rx_attr->size, 128);
    cr_assert((answer->domain_attr->mr_mode & ~hints->domain_attr->mr_mode) == 0);
    cr_assert((answer->mode & ~hints->mode) == 0);
    cr_assert(answer->tx_attr->msg_order & FI_ORDER_SAS);
    cr_assert(answer->rx_attr->msg_order & FI_ORDER_SAS);
}

// What ofi_rxm makes of `dat` is offered to programs that ask for the order of atomics, too: it
// passes their hints on, and offers nothing that is not offered to it.
TRANSPORT_TEST(info_rxm, with_the_order_of_atomics__is_offered) {
    only_dat();
    const Info hints = hints_for(transport);
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_MSG | FI_TAGGED | FI_ATOMIC;
    free(hints->fabric_attr->prov_name);
    hints->fabric_attr->prov_name = strdup("dat;ofi_rxm");
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    for (const std::uint64_t bit :
         {FI_ORDER_ATOMIC_RAR, FI_ORDER_ATOMIC_RAW, FI_ORDER_ATOMIC_WAR, FI_ORDER_ATOMIC_WAW}) {
        hints->tx_attr->msg_order = hints->rx_attr->msg_order = bit;
        const Answer answer = ask(hints.get());
        cr_assert_eq(answer.result, 0, "order %#llx: %d", static_cast<unsigned long long>(bit),
                     answer.result);
        cr_assert_str_eq(answer->fabric_attr->prov_name, "dat;ofi_rxm");
        cr_assert(answer->tx_attr->msg_order & bit);
    }
}

// Bits 58 to 61 are libfabric's own; there may be more.
TRANSPORT_TEST(info_flags, unknown_ones__are_ignored) {
    const Info hints = hints_for(transport);
    for (int bit = 58; bit <= 61; ++bit) {
        const Answer answer = ask(hints.get(), nullptr, nullptr, 1ULL << bit);
        cr_assert_eq(answer.result, 0, "bit %d: %d", bit, answer.result);
    }
}

TRANSPORT_TEST(info_address, of_a_source_node_and_service__is_src_addr) {
    const Info hints = hints_for(transport);
    const Answer answer = ask(hints.get(), transport.address, "4711", FI_SOURCE);
    cr_assert_eq(answer.result, 0, "got %d", answer.result);
    cr_assert_eq(text_of(answer->src_addr), transport.address);
    cr_assert_eq(port_of(answer->src_addr), 4711);
    cr_assert(!answer->dest_addr);
}

TRANSPORT_TEST(info_address, of_a_destination__is_dest_addr_with_a_source_that_reaches_it) {
    const Info hints = hints_for(transport);
    const Answer answer = ask(hints.get(), transport.address, "4711");
    cr_assert_eq(answer.result, 0, "got %d", answer.result);
    cr_assert(answer->dest_addr && answer->src_addr);
    cr_assert_eq(text_of(answer->dest_addr), transport.address);
    cr_assert_eq(port_of(answer->dest_addr), 4711);
    cr_assert_eq(static_cast<const sockaddr*>(answer->src_addr)->sa_family, transport.family);
    if (is_dat())
        cr_assert_eq(text_of(answer->src_addr), transport.address);
}

// A service without a node: the address is still a specific one.
TRANSPORT_TEST(info_address, of_a_source_service_alone__is_specific) {
    const Info hints = hints_for(transport);
    const Answer answer = ask(hints.get(), nullptr, "4712", FI_SOURCE);
    cr_assert_eq(answer.result, 0, "got %d", answer.result);
    cr_assert(answer->src_addr);
    if (is_dat())
        cr_assert(!is_wildcard(answer->src_addr));
    cr_assert_eq(port_of(answer->src_addr), 4712);
}

TRANSPORT_TEST(info_address, in_the_hints__is_taken) {
    const Info hints = hints_for(transport);
    const Answer first = ask(hints.get(), transport.address, "4713");
    cr_assert_eq(first.result, 0);
    hints->dest_addrlen = first->dest_addrlen;
    hints->dest_addr = std::malloc(first->dest_addrlen);
    std::memcpy(hints->dest_addr, first->dest_addr, first->dest_addrlen);
    const Answer second = ask(hints.get());
    cr_assert_eq(second.result, 0, "got %d", second.result);
    cr_assert_eq(port_of(second->dest_addr), 4713);
}

TRANSPORT_TEST(info_address, of_a_node_that_does_not_exist__is_no_data) {
    const Info hints = hints_for(transport);
    const Answer answer = ask(hints.get(), "no.such.host.invalid", "4711");
    cr_assert_eq(answer.result, -FI_ENODATA, "got %d", answer.result);
}

TRANSPORT_TEST(info_address, numeric_only_with_a_name__is_no_data) {
    only_dat();
    const Info hints = hints_for(transport);
    const Answer answer = ask(hints.get(), "localhost", "4711", FI_NUMERICHOST);
    cr_assert_eq(answer.result, -FI_ENODATA, "got %d", answer.result);
}

TRANSPORT_TEST(info_hints, what_cannot_be_met__is_no_data) {
    only_dat();
    const auto with = [&](const std::function<void(fi_info&)>& change) {
        Info hints = hints_for(transport);
        change(*hints);
        require_no_data(hints);
    };
    with([](fi_info& info) { info.ep_attr->type = FI_EP_DGRAM; });
    with([](fi_info& info) { info.caps = FI_MSG | FI_TAGGED; });
    with([](fi_info& info) { info.caps = FI_MSG | FI_MULTICAST; });
    with([](fi_info& info) { info.addr_format = FI_SOCKADDR_IB; });
    with([](fi_info& info) { info.tx_attr->iov_limit = 1000; });
    with([](fi_info& info) { info.tx_attr->inject_size = 1 << 20; });
    with([](fi_info& info) { info.domain_attr->name = strdup("no such domain"); });
    with([](fi_info& info) { info.fabric_attr->name = strdup("no such fabric"); });
    with([](fi_info& info) { info.tx_attr->size = 1 << 30; });
    with([](fi_info& info) { info.ep_attr->protocol = FI_PROTO_SHM; });
}

TRANSPORT_TEST(info_hints, rdm__is_offered_without_layering) {
    only_dat();
    const Info hints = hints_for(transport);
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = 0;
    const int required = transport.device ? FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY : 0;
    const Answer answer = ask(hints.get(), nullptr, nullptr, kCoreProvidersOnly);
    cr_assert_eq(answer.result, 0);
    for (const fi_info* each = answer.info.get(); each; each = each->next) {
        cr_assert_eq(each->ep_attr->type, FI_EP_RDM);
        cr_assert_eq(each->domain_attr->mr_mode, required);
        cr_assert_eq(each->caps & (FI_SOURCE | FI_SOURCE_ERR), FI_SOURCE);
    }
}

// fi_domain(3): FI_AV_UNSPEC says that either type of address vector is offered. A program that is
// answered with FI_AV_TABLE counts the addresses itself, as that of fabtests whose clients come one
// behind the other does, and always sends to the first.
TRANSPORT_TEST(info_hints, the_type_of_an_address_vector__is_left_to_the_program) {
    only_dat();
    const Info hints = hints_for(transport);
    hints->ep_attr->type = FI_EP_RDM;
    for (const fi_av_type type : {FI_AV_UNSPEC, FI_AV_MAP, FI_AV_TABLE}) {
        hints->domain_attr->av_type = type;
        const Answer answer = ask(hints.get(), nullptr, nullptr, kCoreProvidersOnly);
        cr_assert_eq(answer.result, 0);
        for (const fi_info* each = answer.info.get(); each; each = each->next) {
            cr_assert_eq(each->domain_attr->av_type, type);
        }
    }
}

// Who names no type gets what there was before, first.
TRANSPORT_TEST(info_hints, no_type__is_answered_by_msg_before_rdm) {
    only_dat();
    const Info hints = hints_for(transport);
    hints->ep_attr->type = FI_EP_UNSPEC;
    const Answer answer = ask(hints.get(), nullptr, nullptr, kCoreProvidersOnly);
    cr_assert_eq(answer.result, 0);
    cr_assert_eq(answer->ep_attr->type, FI_EP_MSG);
    bool rdm = false;
    for (const fi_info* each = answer.info.get(); each; each = each->next) {
        cr_assert(!rdm || each->ep_attr->type == FI_EP_RDM);
        rdm = each->ep_attr->type == FI_EP_RDM;
    }
    cr_assert(rdm);
}

// What Open MPI's mtl/ofi and MPICH's ch4:ofi ask for (prov/dat/README.md).
TRANSPORT_TEST(info_hints, what_mpi_libraries_ask_for__is_offered) {
    only_dat();
    const Info open_mpi = hints_for(transport);
    open_mpi->ep_attr->type = FI_EP_RDM;
    open_mpi->mode = FI_CONTEXT;
    open_mpi->caps = FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV;
    open_mpi->tx_attr->msg_order = FI_ORDER_SAS;
    open_mpi->rx_attr->msg_order = FI_ORDER_SAS;
    open_mpi->rx_attr->op_flags = FI_COMPLETION;
    open_mpi->tx_attr->op_flags = FI_COMPLETION;
    open_mpi->domain_attr->cq_data_size = 4;
    open_mpi->domain_attr->threading = FI_THREAD_UNSPEC;
    open_mpi->domain_attr->control_progress = FI_PROGRESS_MANUAL;
    open_mpi->domain_attr->resource_mgmt = FI_RM_ENABLED;
    open_mpi->domain_attr->av_type = FI_AV_MAP;
    const Answer first = ask(open_mpi.get());
    cr_assert_eq(first.result, 0);
    cr_assert_eq(first->domain_attr->av_type, FI_AV_MAP);
    const Info mpich = hints_for(transport);
    mpich->ep_attr->type = FI_EP_RDM;
    mpich->mode = FI_CONTEXT | FI_ASYNC_IOV | FI_RX_CQ_DATA;
    mpich->caps = FI_RMA | FI_WRITE | FI_READ | FI_REMOTE_WRITE | FI_REMOTE_READ | FI_ATOMIC |
                  FI_TAGGED | FI_DIRECTED_RECV | FI_MSG | FI_MULTI_RECV | FI_SEND | FI_RECV;
    mpich->tx_attr->op_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE;
    mpich->rx_attr->op_flags = FI_COMPLETION;
    mpich->tx_attr->msg_order = FI_ORDER_SAS | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW |
                                FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;
    mpich->tx_attr->comp_order = FI_ORDER_NONE;
    mpich->ep_attr->mem_tag_format = 0x00e000007fffffff;
    mpich->domain_attr->cq_data_size = 4;
    mpich->domain_attr->threading = FI_THREAD_DOMAIN;
    mpich->domain_attr->control_progress = FI_PROGRESS_MANUAL;
    mpich->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    mpich->domain_attr->resource_mgmt = FI_RM_ENABLED;
    mpich->domain_attr->av_type = FI_AV_TABLE;
    mpich->domain_attr->mode = FI_RESTRICTED_COMP;
    const Answer second = ask(mpich.get());
    cr_assert_eq(second.result, 0);
    const fi_info* own = second.info.get();
    while (own && std::strcmp(own->fabric_attr->prov_name, provider()) != 0) { // ofi_rxm's
        own = own->next;
    }
    cr_assert(own);
    cr_assert_eq(own->domain_attr->mr_mode, 0);
    cr_assert_eq(own->domain_attr->mr_key_size, 8);
}

TRANSPORT_TEST(info_hints, another_providers_name__is_not_answered) {
    const Info hints = hints_for(transport);
    free(hints->fabric_attr->prov_name);
    hints->fabric_attr->prov_name = strdup("no-such-provider");
    require_no_data(hints);
}

// A subset of the capabilities is enough to ask for.
TRANSPORT_TEST(info_hints, msg_alone__is_met) {
    const Info hints = hints_for(transport);
    hints->caps = FI_MSG;
    cr_assert_eq(ask(hints.get()).result, 0);
    hints->caps = 0;
    cr_assert_eq(ask(hints.get()).result, 0);
}

TRANSPORT_TEST(info_hints, both_progress_models_and_threading_levels__are_met_as_asked) {
    for (const fi_progress progress : {FI_PROGRESS_AUTO, FI_PROGRESS_MANUAL}) {
        SideOptions options;
        options.progress = progress;
        const Info hints = hints_for(transport, options);
        const Answer answer = ask(hints.get());
        cr_assert_eq(answer.result, 0, "progress %d: %d", progress, answer.result);
    }
    for (const fi_threading threading :
         {FI_THREAD_UNSPEC, FI_THREAD_SAFE, FI_THREAD_FID, FI_THREAD_DOMAIN}) {
        const Info hints = hints_for(transport);
        hints->domain_attr->threading = threading;
        const Answer answer = ask(hints.get());
        cr_assert_eq(answer.result, 0, "threading %d: %d", threading, answer.result);
    }
}

// fi_fabric() and fi_domain() with the info, as every program does; twice.
TRANSPORT_TEST(info_domains, several_at_once__open) {
    Side first(transport);
    Side second(transport);
    Fid<fid_domain> third;
    DAT_MUST(fi_domain(first.fabric(), first.info(), third.out(), nullptr));
}

// ---- what is not there ---------------------------------------------------

// rxm asks each domain for this, and only -FI_ENOSYS lets it go on.
TRANSPORT_TEST(ops_open, of_unknown_names__is_enosys) {
    Side side(transport);
    Endpoint endpoint(side);
    side.listen();
    void* ops = nullptr;
    cr_assert_eq(fi_open_ops(&side.domain()->fid, "ofix_flow_ctrl_v1", 0, &ops, nullptr),
                 -FI_ENOSYS);
    for (fid_t fid : {&side.fabric()->fid, &side.domain()->fid, &side.eq()->fid, &side.cq()->fid,
                      &side.pep()->fid, endpoint.fid()})
        cr_assert_eq(fi_open_ops(fid, "no such operations", 0, &ops, nullptr), -FI_ENOSYS);
}

TRANSPORT_TEST(ops_open, of_the_endpoint_table__has_its_size) {
    only_dat();
    Side side(transport);
    Endpoint endpoint(side);
    cr_assert_geq(endpoint.dat()->size, sizeof(fi_dat_ops_ep));
    cr_assert(endpoint.dat()->status && endpoint.dat()->disconnect && endpoint.dat()->reset &&
              endpoint.dat()->take_request && endpoint.dat()->set_connect_timeout);
}

// Every slot of every table is filled; what is not built answers -FI_ENOSYS
// and no more than that.
TRANSPORT_TEST(ops_missing, of_domain_and_fabric__answer_without_crashing) {
    only_dat();
    Side side(transport);
    fid_av* av = nullptr;
    fi_av_attr av_attr{};
    av_attr.type = FI_AV_MAP;
    av_attr.flags = FI_EVENT;
    cr_assert_neq(fi_av_open(side.domain(), &av_attr, &av, nullptr), 0);
    fid_stx* stx = nullptr;
    cr_assert_neq(fi_stx_context(side.domain(), side.info()->tx_attr, &stx, nullptr), 0);
    fid_ep* scalable = nullptr;
    cr_assert_neq(fi_scalable_ep(side.domain(), side.info(), &scalable, nullptr), 0);
    fid_wait* wait = nullptr;
    fi_wait_attr wait_attr{};
    cr_assert_neq(fi_wait_open(side.fabric(), &wait_attr, &wait), 0);
}

TRANSPORT_TEST(ops_missing, of_a_connected_endpoint__answer_without_crashing) {
    only_dat();
    auto pair = Pair::connected(transport);
    fid_ep* ep = pair->active.get();
    char byte = 0;
    Op& op = new_op();
    cr_assert_eq(fi_tsend(ep, &byte, 1, nullptr, FI_ADDR_UNSPEC, 1, &op), -FI_ENOSYS);
    cr_assert_eq(fi_trecv(ep, &byte, 1, nullptr, FI_ADDR_UNSPEC, 1, 0, &op), -FI_ENOSYS);
    cr_assert_eq(fi_tinject(ep, &byte, 1, FI_ADDR_UNSPEC, 1), -FI_ENOSYS);
    std::uint64_t address = 0;
    cr_assert_neq(fi_join(ep, &address, 0, nullptr, nullptr), 0);
    fid_ep* context = nullptr;
    cr_assert_neq(fi_tx_context(ep, 0, nullptr, &context, nullptr), 0);
    cr_assert_neq(fi_rx_context(ep, 0, nullptr, &context, nullptr), 0);
    std::size_t value = 0;
    std::size_t size = sizeof value;
    cr_assert_neq(fi_getopt(pair->active.fid(), FI_OPT_ENDPOINT, 9999, &value, &size), 0);
    cr_assert_neq(fi_setopt(pair->active.fid(), FI_OPT_ENDPOINT, 9999, &value, size), 0);
    settle(20);
    cr_assert(!op.done());
    require_state(pair->active, FI_DAT_CONNECTED);
}

// Binding and enabling.
TRANSPORT_TEST(ops_enable, without_a_cq__is_refused) {
    Side side(transport);
    Fid<fid_ep> ep;
    DAT_MUST(fi_endpoint(side.domain(), side.info(), ep.out(), nullptr));
    cr_assert_neq(fi_enable(ep.get()), 0);
}

TRANSPORT_TEST(ops_bind, of_something_strange__is_refused) {
    only_dat();
    Side side(transport);
    Fid<fid_ep> ep;
    DAT_MUST(fi_endpoint(side.domain(), side.info(), ep.out(), nullptr));
    cr_assert_neq(fi_ep_bind(ep.get(), &side.fabric()->fid, 0), 0);
    cr_assert_neq(fi_ep_bind(ep.get(), &side.domain()->fid, 0), 0);
}
