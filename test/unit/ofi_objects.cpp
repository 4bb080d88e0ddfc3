// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The objects on loopback, without libfabric's core in between: their tables, what
// keeps them open, requests, wait objects.
#include "engine/kernel.h"
#include "ofi/domain.h"
#include "ofi/ep.h"
#include "ofi/fabric.h"
#include "ofi/info.h"
#include "ofi/no_op.h"
#include "ofi/pep.h"
#include "ofi/wait.h"

#include <criterion/criterion.h>
#include <rdma/fi_cm.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <utility>

using namespace dat::ofi;

namespace {

constexpr std::uint32_t kApi = FI_VERSION(1, 17);

Info loopback_info() {
    const Info hints(fi_allocinfo());
    hints->addr_format = FI_SOCKADDR_IN;
    fi_info* found = nullptr;
    cr_assert_eq(getinfo(kApi, "127.0.0.1", nullptr, FI_SOURCE, hints.get(), &found), 0);
    return Info(found);
}

// One object of each class; closed in the opposite order.
struct Objects {
    Info info = loopback_info();
    fid_fabric* fabric = nullptr;
    fid_eq* eq = nullptr;
    fid_pep* pep = nullptr;
    fid_domain* domain = nullptr;
    fid_cq* cq = nullptr;
    fid_mr* mr = nullptr;
    fid_ep* ep = nullptr;
    char memory[8] = {};

    Objects() {
        fi_cq_attr cq_attr{};
        cq_attr.wait_obj = FI_WAIT_FD;
        cr_assert_eq(open_fabric(info->fabric_attr, &fabric, nullptr), 0);
        cr_assert_eq(fi_eq_open(fabric, nullptr, &eq, nullptr), 0);
        cr_assert_eq(fi_passive_ep(fabric, info.get(), &pep, nullptr), 0);
        cr_assert_eq(fi_domain(fabric, info.get(), &domain, nullptr), 0);
        cr_assert_eq(fi_cq_open(domain, &cq_attr, &cq, nullptr), 0);
        cr_assert_eq(fi_mr_reg(domain, memory, sizeof memory, FI_REMOTE_READ, 0, 1, 0, &mr, this),
                     0);
        cr_assert_eq(fi_endpoint(domain, info.get(), &ep, nullptr), 0);
    }
    ~Objects() {
        for (fid_t object : {ep ? &ep->fid : nullptr, mr ? &mr->fid : nullptr, &cq->fid,
                             &domain->fid, &pep->fid, &eq->fid, &fabric->fid}) {
            cr_assert(!object || fi_close(object) == 0);
        }
    }
};

// libfabric's tables are a size and then functions: none may be missing.
template <class Table> void require_full(const Table* table, const char* name) {
    cr_assert_not_null(table, "%s", name);
    cr_assert_eq(table->size, sizeof(Table), "%s", name);
    void* slots[sizeof(Table) / sizeof(void*)];
    std::memcpy(slots, table, sizeof slots);
    for (std::size_t i = 1; i < std::size(slots); ++i) {
        cr_assert_not_null(slots[i], "slot %zu of %s", i, name);
    }
}

// Brings an event by its progress(), or by its catch_up(), once.
class Bringer final : public EventSource {
  public:
    Bringer(EventQueue& eq, bool announces, std::uint32_t type)
        : eq_(eq), announces_(announces), type_(type) {}
    ~Bringer() { close(fd_); }
    Bringer(const Bringer&) = delete;
    Bringer& operator=(const Bringer&) = delete;
    int wait_fd() const override { return fd_; } // never readable
    bool announces() const override { return announces_; }
    void progress() override {
        if (announces_) {
            bring();
        }
    }
    void catch_up() override { bring(); }

  private:
    void bring() {
        if (!std::exchange(done_, true)) {
            EventQueue::Events events(1);
            events.front().raw = true;
            events.front().type = type_;
            events.front().data.resize(1);
            announces_ ? eq_.push_request(std::move(events)) : eq_.push(std::move(events));
        }
    }

    EventQueue& eq_;
    const bool announces_;
    const std::uint32_t type_;
    const int fd_ = eventfd(0, 0);
    bool done_ = false;
};

std::unique_ptr<Incoming> no_request() {
    return std::make_unique<Incoming>(
        std::make_unique<dat::iwarp::ConnRequest>(dat::iwarp::Arrived{}, std::chrono::seconds(0)));
}

fid_t add(Objects& o) {
    std::unique_ptr<Incoming> request = no_request();
    return fabric_of(o.fabric).add_request(request, pep_of(o.pep));
}

} // namespace

Test(ofi_tables, of_every_object__have_no_hole) {
    Objects o;
    for (fid_t object : {&o.fabric->fid, &o.eq->fid, &o.pep->fid, &o.domain->fid, &o.cq->fid,
                         &o.mr->fid, &o.ep->fid}) {
        require_full(object->ops, "fid");
    }
    require_full(o.fabric->ops, "fabric");
    require_full(o.eq->ops, "eq");
    require_full(o.pep->ops, "pep");
    require_full(o.pep->cm, "pep cm");
    require_full(o.domain->ops, "domain");
    require_full(o.domain->mr, "domain mr");
    require_full(o.cq->ops, "cq");
    require_full(o.ep->ops, "ep");
    require_full(o.ep->cm, "ep cm");
    require_full(o.ep->tagged, "tagged");
    require_full(o.ep->atomic, "atomic");
    require_full(o.ep->collective, "collective");
    for (const fi_ops_msg* table : {o.ep->msg, &msg_ops_unconnected, &msg_ops_iwarp}) {
        require_full(table, "msg");
    }
    for (const fi_ops_rma* table : {o.ep->rma, &rma_ops_unconnected, &rma_ops_iwarp}) {
        require_full(table, "rma");
    }
}

// Extensions of others are probed for on every class of object.
Test(ofi_tables, unknown_extension__is_enosys_everywhere) {
    Objects o;
    for (fid_t object : {&o.fabric->fid, &o.eq->fid, &o.pep->fid, &o.domain->fid, &o.cq->fid,
                         &o.mr->fid, &o.ep->fid}) {
        void* table = nullptr;
        cr_assert_eq(fi_open_ops(object, "ofix_flow_ctrl_v1", 0, &table, nullptr), -FI_ENOSYS);
        cr_assert_null(table);
    }
    void* table = nullptr;
    cr_assert_eq(fi_open_ops(&o.ep->fid, FI_DAT_EP_OPS, 0, &table, nullptr), 0);
    cr_assert_eq(table, &dat_ep_ops);
}

Test(ofi_close, of_what_others_stand_on__is_busy) {
    Objects o;
    cr_assert_eq(fi_ep_bind(o.ep, &o.eq->fid, 0), 0);
    cr_assert_eq(fi_ep_bind(o.ep, &o.cq->fid, FI_TRANSMIT | FI_RECV), 0);
    cr_assert_eq(fi_close(&o.fabric->fid), -FI_EBUSY);
    cr_assert_eq(fi_close(&o.domain->fid), -FI_EBUSY);
    cr_assert_eq(fi_close(&o.eq->fid), -FI_EBUSY);
    cr_assert_eq(fi_close(&o.cq->fid), -FI_EBUSY);
}

Test(ofi_enable, without_queues__names_what_is_missing) {
    Objects o;
    cr_assert_eq(fi_enable(o.ep), -FI_ENOEQ);
    cr_assert_eq(fi_ep_bind(o.ep, &o.eq->fid, 0), 0);
    cr_assert_eq(fi_enable(o.ep), -FI_ENOCQ);
    cr_assert_eq(fi_ep_bind(o.ep, &o.cq->fid, FI_TRANSMIT), 0);
    cr_assert_eq(fi_enable(o.ep), -FI_ENOCQ);
    cr_assert_eq(fi_ep_bind(o.ep, &o.cq->fid, FI_RECV), 0);
    cr_assert_eq(fi_enable(o.ep), 0);
}

Test(ofi_post, before_enable__is_refused_by_state) {
    Objects o;
    cr_assert_eq(fi_recv(o.ep, o.memory, 8, nullptr, 0, nullptr), -FI_EOPBADSTATE);
    cr_assert_eq(fi_send(o.ep, o.memory, 8, nullptr, 0, nullptr), -FI_EOPBADSTATE);
    cr_assert_eq(fi_write(o.ep, o.memory, 8, nullptr, 0, 0, 1, nullptr), -FI_EOPBADSTATE);
}

// CR-9, OBJ-3: one holder, one settlement, and no pointer of a gone request followed.
Test(ofi_request, of_one_holder__is_settled_once) {
    Objects o;
    Fabric& fabric = fabric_of(o.fabric);
    Endpoint& holder = ep_of(o.ep);
    const fid_t handle = add(o);
    cr_assert(fabric.hold_request(handle, holder));
    cr_assert(!fabric.hold_request(handle, holder));
    cr_assert_not_null(fabric.take_request(handle, &holder));
    cr_assert_null(fabric.take_request(handle, &holder));
    cr_assert_null(fabric.take_request(handle, nullptr));
    cr_assert(!fabric.hold_request(handle, holder));
}

// ofi_rxm rejects a request after it has closed the endpoint made from it.
Test(ofi_request, dropped_by_its_holder__can_be_rejected) {
    Objects o;
    Fabric& fabric = fabric_of(o.fabric);
    const fid_t handle = add(o);
    o.info->handle = handle;
    fid_ep* ep = nullptr;
    cr_assert_eq(fi_endpoint(o.domain, o.info.get(), &ep, nullptr), 0);
    cr_assert_eq(fi_close(&ep->fid), 0);
    o.info->handle = nullptr;
    cr_assert_not_null(fabric.take_request(handle, nullptr));
}

// SP-6: a request that the program has, stays; one that nobody can settle goes.
Test(ofi_request, after_its_passive_endpoint__lives_while_it_can_be_settled) {
    Objects o;
    Fabric& fabric = fabric_of(o.fabric);
    Endpoint& holder = ep_of(o.ep);
    const fid_t unseen = add(o);
    const fid_t held = add(o);
    const fid_t dropped = add(o);
    cr_assert(fabric.hold_request(held, holder) && fabric.hold_request(dropped, holder));
    fabric.drop_request(dropped, holder);
    fabric.forget_origin(pep_of(o.pep));
    cr_assert_null(fabric.take_request(dropped, nullptr));
    cr_assert_not_null(fabric.take_request(unseen, nullptr));
    fabric.drop_request(held, holder);
    cr_assert_null(fabric.take_request(held, nullptr));
}

Test(ofi_getinfo, source_flag_without_a_source__is_invalid) {
    fi_info* found = nullptr;
    cr_assert_eq(getinfo(kApi, nullptr, nullptr, FI_SOURCE, nullptr, &found), -FI_EINVAL);
    cr_assert_null(found);
}

// ofi_rxm passes flags of libfabric's own.
Test(ofi_getinfo, unknown_flags__are_ignored) {
    fi_info* found = nullptr;
    cr_assert_eq(getinfo(kApi, nullptr, nullptr, std::uint64_t{0xf} << 58, nullptr, &found), 0);
    const Info owner(found);
    for (const fi_info* info = found; info; info = info->next) {
        cr_assert(info->src_addr && info->domain_attr->name && info->fabric_attr->name);
    }
}

Test(ofi_getinfo, wildcard_sources__become_specific_ones_with_the_port) {
    fi_info* found = nullptr;
    cr_assert_eq(getinfo(kApi, nullptr, "4321", FI_SOURCE, nullptr, &found), 0);
    const Info owner(found);
    for (const fi_info* info = found; info; info = info->next) {
        const dat::net::SocketAddress source(static_cast<const sockaddr*>(info->src_addr),
                                             info->src_addrlen);
        cr_assert(source.valid() && !source.wildcard());
        cr_assert_eq(source.port(), 4321);
    }
}

Test(ofi_getinfo, names__select_the_interface) {
    const Info lo = loopback_info();
    const Info hints(fi_allocinfo());
    hints->domain_attr->name = strdup(lo->domain_attr->name);
    fi_info* found = nullptr;
    cr_assert_eq(getinfo(kApi, nullptr, nullptr, 0, hints.get(), &found), 0);
    const Info owner(found);
    for (const fi_info* info = found; info; info = info->next) {
        cr_assert_str_eq(info->domain_attr->name, lo->domain_attr->name);
    }
    free(hints->domain_attr->name);
    hints->domain_attr->name = strdup("no such interface");
    found = nullptr;
    cr_assert_eq(getinfo(kApi, nullptr, nullptr, 0, hints.get(), &found), -FI_ENODATA);
    cr_assert_null(found);
}

Test(ofi_wait, set_with_a_raised_signal__is_readable_until_it_is_cleared) {
    Signal signal;
    WaitSet set;
    cr_assert(signal.open() == 0 && set.open() == 0 && set.add(signal.fd()) == 0);
    cr_assert(!dat::kernel::is_readable(set.fd()));
    signal.raise();
    signal.raise();
    cr_assert(wait_readable(set.fd(), -1) == 0 && dat::kernel::is_readable(set.fd()));
    signal.clear();
    cr_assert(!dat::kernel::is_readable(set.fd()));
    set.remove(signal.fd());
    signal.raise();
    cr_assert(!dat::kernel::is_readable(set.fd()));
}

// A peer that connects one after the other finds them in that order here, also where a domain has
// not been asked yet, or its progress thread has seen the first and has not told of it.
Test(ofi_eq, a_request__is_told_behind_connections_that_were_made_before) {
    Objects objects;
    EventQueue& eq = eq_of(objects.eq);
    Bringer listener(eq, true, 1);
    Bringer domain(eq, false, 2);
    cr_assert_eq(eq.add_source(domain), 0);
    cr_assert_eq(eq.add_source(listener), 0);
    std::uint32_t types[2] = {};
    char data = 0;
    for (std::uint32_t& type : types) {
        cr_assert_eq(fi_eq_read(objects.eq, &type, &data, 1, 0), 1);
    }
    cr_assert_eq(types[0], 2);
    cr_assert_eq(types[1], 1);
    eq.remove_source(listener);
    eq.remove_source(domain);
}
