// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See fabric_side.h. May include: test/bench, std, libfabric.
#include "fabric_side.h"

#include "bench.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cstring>
#include <netinet/in.h>
#include <rdma/fi_errno.h>

namespace dat::bench {
namespace {

// For a call that makes an object: what it makes has its owner when the call is over.
template <class Owner> class Out {
  public:
    explicit Out(Owner& owner) : owner_(owner) {}
    ~Out() { owner_.reset(made_); }
    Out(const Out&) = delete;
    Out& operator=(const Out&) = delete;
    operator typename Owner::pointer *() { return &made_; }

  private:
    Owner& owner_;
    typename Owner::pointer made_ = nullptr;
};
template <class Owner> Out<Owner> out(Owner& owner) { return Out<Owner>(owner); }

} // namespace

void FabricSide::failed(ssize_t rc, const char* call) {
    die("%s: %s", call, fi_strerror(static_cast<int>(-rc)));
}

void FabricSide::failed_operation() {
    fi_cq_err_entry entry{};
    fi_cq_readerr(cq_.get(), &entry, 0);
    die("an operation failed: %s", fi_strerror(entry.err));
}

FabricSide::FabricSide(const char* provider, std::size_t size, fi_progress progress)
    : size_(size), out_(std::max<std::size_t>(size, 1)), in_(std::max<std::size_t>(size, 1)) {
    const std::unique_ptr<fi_info, FreeInfo> hints(fi_allocinfo());
    hints->caps = FI_MSG;
    hints->addr_format = FI_SOCKADDR_IN;
    hints->ep_attr->type = FI_EP_MSG;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->control_progress = progress;
    hints->domain_attr->data_progress = progress;
    hints->fabric_attr->prov_name = strdup(provider);
    fi_info* info = nullptr;
    ok(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", "0", FI_SOURCE, hints.get(), &info),
       "fi_getinfo");
    info_.reset(info);
    ok(fi_fabric(info->fabric_attr, out(fabric_), nullptr), "fi_fabric");
    ok(fi_domain(fabric_.get(), info, out(domain_), nullptr), "fi_domain");
    fi_eq_attr eq_attr{};
    eq_attr.wait_obj = FI_WAIT_NONE;
    ok(fi_eq_open(fabric_.get(), &eq_attr, out(eq_), nullptr), "fi_eq_open");
    fi_cq_attr cq_attr{};
    cq_attr.format = FI_CQ_FORMAT_CONTEXT;
    cq_attr.wait_obj = FI_WAIT_NONE;
    cq_attr.size = 4 * kQueue;
    ok(fi_cq_open(domain_.get(), &cq_attr, out(cq_), nullptr), "fi_cq_open");
}

FabricSide::~FabricSide() = default; // in reverse: endpoints first

std::uint16_t FabricSide::listen() {
    ok(fi_passive_ep(fabric_.get(), info_.get(), out(listener_), nullptr), "fi_passive_ep");
    ok(fi_pep_bind(listener_.get(), &eq_->fid, 0), "fi_pep_bind");
    ok(fi_listen(listener_.get()), "fi_listen");
    sockaddr_in address{};
    std::size_t size = sizeof address;
    ok(fi_getname(&listener_->fid, &address, &size), "fi_getname");
    return ntohs(address.sin_port);
}

// Some providers find the end of a connection only when completions are asked for, so
// that is done as well.
bool FabricSide::read_event(std::uint32_t& event, fi_eq_cm_entry& entry) {
    const ssize_t n = fi_eq_read(eq_.get(), &event, &entry, sizeof entry, 0);
    if (n == -FI_EAGAIN) {
        fi_cq_read(cq_.get(), nullptr, 0);
        return false;
    }
    if (n == -FI_EAVAIL) {
        fi_eq_err_entry error{};
        fi_eq_readerr(eq_.get(), &error, 0);
        die("a connection failed: %s", fi_strerror(error.err));
    }
    if (n < 0) {
        failed(n, "fi_eq_read");
    }
    return true;
}

fi_eq_cm_entry FabricSide::wait_event(std::uint32_t wanted) {
    std::uint32_t event = 0;
    fi_eq_cm_entry entry{};
    fi_eq_cm_entry* const into = &entry;
    if (!comes([&] { return read_event(event, *into); })) {
        die("waited in vain for a connection event");
    }
    if (event != wanted) {
        die("connection event %u came, %u was expected", event, wanted);
    }
    return entry;
}

void FabricSide::open_endpoint(fi_info* info) {
    ok(fi_endpoint(domain_.get(), info, out(endpoints_.emplace_back()), nullptr), "fi_endpoint");
    fid_ep* ep = endpoints_.back().get();
    ok(fi_ep_bind(ep, &eq_->fid, 0), "fi_ep_bind");
    ok(fi_ep_bind(ep, &cq_->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
    ok(fi_enable(ep), "fi_enable");
}

void FabricSide::answer(const fi_eq_cm_entry& request) {
    open_endpoint(request.info);
    ok(fi_accept(endpoints_.back().get(), nullptr, 0), "fi_accept");
    fi_freeinfo(request.info);
}

void FabricSide::accept() {
    answer(wait_event(FI_CONNREQ));
    wait_event(FI_CONNECTED);
}

void FabricSide::begin_connect(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    open_endpoint(info_.get());
    ok(fi_connect(endpoints_.back().get(), &address, nullptr, 0), "fi_connect");
}

void FabricSide::connect(std::uint16_t port) {
    begin_connect(port);
    wait_event(FI_CONNECTED);
}

bool FabricSide::progress_connect() {
    std::uint32_t event = 0;
    fi_eq_cm_entry entry{};
    if (!read_event(event, entry)) {
        return false;
    }
    if (event == FI_CONNREQ) {
        answer(entry);
    }
    return event == FI_CONNECTED;
}

void FabricSide::end() { endpoints_.pop_back(); }

void FabricSide::ended() {
    wait_event(FI_SHUTDOWN);
    end();
}

} // namespace dat::bench
