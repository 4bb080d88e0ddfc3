// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See service_point.h and cr.h.
#include "dat-shim/service_point.h"

#include "base/attempt.h"
#include "dat-shim/cr.h"
#include "dat-shim/ep.h"
#include "dat-shim/evd.h"
#include "dat-shim/ia.h"
#include "dat-shim/reason.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <netinet/in.h>
#include <utility>

namespace dat::shim {
namespace {

// Address and port are at the same place in both families.
void set_port(sockaddr_storage& address, std::uint64_t port) {
    const std::uint16_t number = htobe16(static_cast<std::uint16_t>(port));
    std::memcpy(reinterpret_cast<char*>(&address) + 2, &number, sizeof number);
}

std::size_t size_of(const sockaddr& address) {
    return address.sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

} // namespace

ServicePoint::ServicePoint(Ia& ia, const Asked& asked)
    : Object(ia, asked.kind, ia.dispatch()), asked_(asked) {
    const sockaddr* address = asked.address ? asked.address : ia.address();
    std::memcpy(&address_, address, size_of(*address));
    set_port(address_, asked.qualifier);
    asked_.address = nullptr;
    asked_.ep_handle = asked.ep ? asked.ep->handle() : nullptr;
}

ServicePoint::~ServicePoint() = default;

std::uint64_t ServicePoint::port_in(const sockaddr& address) {
    std::uint16_t number = 0;
    std::memcpy(&number, reinterpret_cast<const char*>(&address) + 2, sizeof number);
    return be16toh(number);
}

Return ServicePoint::create(Ia& ia, const Asked& asked, ServicePoint*& point) {
    if (&asked.evd->ia() != &ia || (asked.evd->streams() & stream::kRequest) == 0) { // EVD-3
        return because(fail(Type::invalid_handle, Sub::invalid_handle_evd_cr),
                       "an EVD for requests has to be made with DAT_EVD_CR_FLAG, on the same IA");
    }
    if (asked.ep && asked.ep->state() != FI_DAT_UNCONNECTED) {
        return asked.ep->state_error(); // SP-10
    }
    point = ia.make<ServicePoint>(ia, asked);
    if (!asked.evd->add_stream()) {
        ia.destroy(*point);
        return bad_argument(3);
    }
    Return rc = fail(Type::insufficient_resources, Sub::resource_memory);
    (void)base::attempt([&] { rc = point->open(); });
    if (rc) {
        if (point->pep_) {
            fi_close(&point->pep_->fid);
        }
        asked.evd->remove_stream();
        ia.destroy(*point);
    }
    return rc;
}

Return ServicePoint::open() {
    const Info info = copy(ia().info());
    fid_eq* const queue = asked_.evd->event_queue(ia());
    if (!queue) {
        return fail(Type::insufficient_resources, Sub::resource_tevd);
    }
    std::memcpy(info->src_addr, &address_, info->src_addrlen);
    if (const int rc = fi_passive_ep(ia().fabric(), info.get(), &pep_, this)) {
        pep_ = nullptr;
        return Ia::from_errno(rc);
    }
    fi_dat_ops_pep* ops = nullptr;
    int backlog = INT_MAX; // the EVD limits them (SP-3)
    int rc = fi_open_ops(&pep_->fid, FI_DAT_PEP_OPS, 0, reinterpret_cast<void**>(&ops), nullptr);
    rc = rc ? rc : fi_pep_bind(pep_, &queue->fid, 0);
    rc = rc ? rc : fi_control(&pep_->fid, FI_BACKLOG, &backlog);
    if (rc == 0 && asked_.ep) {
        rc = ops->reserve(pep_, asked_.ep->fid());
    }
    if (rc == 0 && asked_.makes_endpoints) {
        rc = ops->provide(pep_, ia().domain(), &ia().info());
    }
    return rc ? Ia::from_errno(rc) : listen();
}

Return ServicePoint::listen() {
    switch (fi_listen(pep_)) {
    case 0:
        break;
    case -FI_EADDRINUSE:
        return asked_.kind == Kind::csp ? fail(Type::port_in_use) : fail(Type::conn_qual_in_use);
    case -FI_EACCES:
        return because(bad_argument(2), "port %u is a privileged one",
                       static_cast<unsigned>(asked_.qualifier & 0xffff));
    case -FI_EMFILE:
    case -ENFILE:
    case -FI_ENOMEM:
    case -FI_ENOSPC:
        return fail(Type::insufficient_resources, Sub::resource_device);
    default:
        return asked_.qualifier == 0 ? fail(Type::conn_qual_unavailable) : bad_argument(2);
    }
    std::size_t size = sizeof address_;
    if (fi_getname(&pep_->fid, &address_, &size) == 0 && asked_.qualifier == 0) {
        asked_.qualifier = port_in(*address());
    }
    return kSuccess;
}

Return ServicePoint::free() {
    fi_close(&pep_->fid);
    asked_.evd->remove_stream();
    ia().destroy(*this);
    return kSuccess;
}

bool ServicePoint::request_arrived(fi_info* given, std::span<const std::byte> data, bool room,
                                   Event& event) {
    Info info(given);
    const fid_t handle = info->handle;
    if (!room) {
        ia().fabric_ops().refuse(ia().fabric(), handle);
        return false;
    }
    Cr* cr = nullptr;
    if (!base::attempt([&] {
            cr = ia().make<Cr>(ia(), std::move(info), data, asked_.qualifier);
            if (kind() == Kind::rsp) {
                cr->set_ep(asked_.ep);
                asked_.ep->cr_ = cr;
            } else if (asked_.makes_endpoints) {
                fid_ep* made = nullptr;
                ia().fabric_ops().request_endpoint(ia().fabric(), handle, &made);
                cr->set_ep(&Ep::adopt(ia(), made, *cr));
            }
        })) {
        ia().fabric_ops().refuse(ia().fabric(), handle); // out of memory
        if (cr) {
            ia().destroy(*cr);
        }
        return false;
    }
    event.number = Number::connection_request;
    event.notice = kAlways;
    event.subject = cr;
    event.request = {this->handle(), cr};
    return true;
}

// --- Cr ---------------------------------------------------------------------------

Cr::Cr(Ia& ia, Info info, std::span<const std::byte> data, std::uint64_t qualifier)
    : Object(ia, kKind, ia.dispatch()), info_(std::move(info)), qualifier_(qualifier),
      size_(data.size()) {
    std::copy(data.begin(), data.end(), data_.begin());
}

Return Cr::accept(Ep* ep, std::span<const std::byte> data) {
    if ((ep == nullptr) != (ep_ != nullptr)) {
        return fail(Type::invalid_handle, Sub::invalid_handle_ep);
    }
    Ep& answering = ep ? *ep : *ep_;
    if (&answering.ia() != &ia()) {
        return fail(Type::invalid_handle, Sub::invalid_handle_ep);
    }
    const Return rc = answering.accept(*this, ep != nullptr, data);
    if (rc == kSuccess) {
        ia().destroy(*this);
    }
    return rc;
}

Return Cr::reject(std::span<const std::byte> data) {
    const int rc = ia().fabric_ops().reject(ia().fabric(), request(), data.data(), data.size());
    if (rc != 0) { // more data than the peer takes
        return bad_argument(2);
    }
    settled();
    return kSuccess;
}

Return Cr::hand_off(std::uint64_t qualifier) {
    ServicePoint* const to = ia().find_point(qualifier);
    if (!to || ia().fabric_ops().handoff(ia().fabric(), request(), to->fid()) != 0) {
        return bad_argument(2); // U-31
    }
    settled();
    return kSuccess;
}

void Cr::refuse() {
    ia().fabric_ops().refuse(ia().fabric(), request());
    settled();
}

// CR-7: an endpoint that the provider made for it is gone.
void Cr::settled() {
    if (ep_) {
        ep_->request_settled(ep_->is_adopted());
    }
    ia().destroy(*this);
}

const sockaddr* Cr::remote_address(std::uint64_t& port) const {
    const auto* const address = static_cast<const sockaddr*>(info_->dest_addr);
    port = ServicePoint::port_in(*address);
    return address;
}

} // namespace dat::shim
