// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See ia.h.
#include "dat-shim/ia.h"

#include "base/attempt.h"
#include "dat-shim/cno.h"
#include "dat-shim/cr.h"
#include "dat-shim/ep.h"
#include "dat-shim/evd.h"
#include "dat-shim/inside.h"
#include "dat-shim/registry.h"
#include "dat-shim/service_point.h"
#include "dat-shim/srq.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>

namespace dat::shim {

Ia::Ia(std::string name, Info info, const void* dispatch)
    : Object(*this, kKind, dispatch), name_(std::move(name)), info_(std::move(info)),
      dispatch_(dispatch) {}

Ia::~Ia() {
    while (!buried_.empty()) {
        delete &buried_.pop();
    }
    if (domain_) {
        fi_close(&domain_->fid);
    }
    // The event queue of asynchronous events can only be closed behind its domain.
    if (async_evd_) {
        if (async_is_own_) {
            delete async_evd_;
        } else {
            async_evd_->drop_event_queue(*this);
            async_evd_->remove_stream();
            async_evd_->ia().release();
        }
    }
    if (fabric_) {
        fi_close(&fabric_->fid);
    }
}

Return Ia::from_errno(int rc) {
    switch (rc) {
    case 0:
        return kSuccess;
    case -FI_ENOMEM:
        return fail(Type::insufficient_resources, Sub::resource_memory);
    case -FI_EINVAL:
        return fail(Type::invalid_parameter);
    default: // of descriptors, most likely
        return fail(Type::insufficient_resources, Sub::resource_device);
    }
}

Return Ia::open(const Opening& opening, Ia*& ia) {
    if (out_of_descriptors()) {
        return fail(Type::insufficient_resources, Sub::resource_device);
    }
    Info info = offer_of(opening.device);
    if (!info) {
        return no_such_device(opening.name, opening.device, opening.major);
    }
    auto made = std::make_unique<Ia>(opening.name, std::move(info), opening.dispatch);
    if (const Return rc = made->open(opening)) {
        return rc;
    }
    ia = made.release();
    return kSuccess;
}

Return Ia::open(const Opening& opening) {
    if (const int rc = open_fabric(*info_, &fabric_)) {
        return from_errno(rc);
    }
    if (const int rc = fi_domain(fabric_, info_.get(), &domain_, this)) {
        return from_errno(rc);
    }
    can_ = abilities_of(*info_, *fabric_, *domain_);
    if (fi_open_ops(&fabric_->fid, FI_DAT_FABRIC_OPS, 0, reinterpret_cast<void**>(&fabric_ops_),
                    nullptr) != 0 ||
        fi_open_ops(&domain_->fid, FI_DAT_DOMAIN_OPS, 0, reinterpret_cast<void**>(&domain_ops_),
                    nullptr) != 0) {
        return fail(Type::internal_error);
    }
    if (opening.async_elsewhere) {
        return kSuccess;
    }
    async_evd_ = opening.async;
    if (!async_evd_) {
        async_evd_ = new Evd(*this, std::max(opening.async_length, 8), stream::kAsync);
        async_is_own_ = true;
    }
    if (!async_is_own_ && !async_evd_->ia().lend()) {
        async_evd_ = nullptr;
        return fail(Type::invalid_handle, Sub::invalid_handle_evd_async);
    }
    if (!async_evd_->add_stream()) {
        if (!async_is_own_) {
            async_evd_->ia().release();
            async_evd_ = nullptr;
        }
        return fail(Type::invalid_handle, Sub::invalid_handle_evd_async);
    }
    fid_eq* const queue = async_evd_->event_queue(*this);
    if (!queue) {
        return fail(Type::insufficient_resources, Sub::resource_tevd);
    }
    return from_errno(fi_domain_bind(domain_, &queue->fid, FI_DAT_ASYNC));
}

void Ia::destroy(Object& object) {
    {
        const std::lock_guard lock(mutex_);
        objects_.erase(&object);
    }
    delete &object;
}

void Ia::bury(Ep& ep) {
    const auto now = std::chrono::steady_clock::now();
    const std::lock_guard lock(mutex_);
    objects_.erase(&ep);
    ep.hide();
    ep.buried_at_ = now;
    buried_.push(ep);
    dig_up(now);
}

void Ia::dig_up(std::chrono::steady_clock::time_point now) {
    while (!buried_.empty() && now - buried_.front().buried_at_ >= std::chrono::seconds(1)) {
        delete &buried_.pop();
    }
}

bool Ia::shares_device_with(const Ia& other) const {
    return std::strcmp(info_->domain_attr->name, other.info_->domain_attr->name) == 0;
}

bool Ia::lend() {
    const std::lock_guard lock(mutex_);
    if (is_closing()) {
        return false;
    }
    ++held_;
    return true;
}

Return Ia::borrow(Evd& evd, Sub what) {
    if (!evd.ia().lend()) {
        return fail(Type::invalid_handle, what);
    }
    const std::lock_guard lock(mutex_);
    if (!base::attempt([&] { ++borrowed_[&evd]; })) {
        evd.ia().release();
        return fail(Type::insufficient_resources, Sub::resource_memory);
    }
    return kSuccess;
}

void Ia::give_back(Evd& evd) {
    {
        const std::lock_guard lock(mutex_);
        const auto entry = borrowed_.find(&evd);
        if (--entry->second == 0) {
            borrowed_.erase(entry);
            if (&evd != async_evd_) {
                evd.drop_event_queue(*this);
            }
        }
    }
    evd.ia().release();
}

Return Ia::begin_closing(bool graceful) {
    const std::lock_guard lock(mutex_);
    if (is_closing()) { // by another thread
        return fail(Type::invalid_handle, Sub::invalid_handle_ia);
    }
    // The own asynchronous EVD is none of them.
    if (graceful && (!objects_.empty() || held_ > 1)) {
        return fail(Type::invalid_state, Sub::invalid_state_ia_in_use);
    }
    closing_.store(true, std::memory_order_relaxed);
    conceal(*this);
    if (async_is_own_) {
        conceal(*async_evd_);
    }
    for (Object* object : objects_) {
        conceal(*object);
    }
    return kSuccess;
}

void Ia::close() {
    wakes_.end();
    await_others();
    end_all();
    release();
}

// Behind the last there is nothing left but EVDs that had been lent.
void Ia::release() {
    if (--held_ == 0) {
        for_each<Evd>(Kind::evd, [](Evd* evd) { evd->free(); });
        delete this;
    }
}

// Calls it for each object of the kind, which may destroy it.
template <class T, class Call> void Ia::for_each(Kind kind, Call&& call) {
    {
        const std::lock_guard lock(mutex_);
        found_.clear();
        for (Object* object : objects_) {
            if (object->kind() == kind) {
                found_.push_back(object);
            }
        }
    }
    for (Object* object : found_) {
        call(static_cast<T*>(object));
    }
}

ServicePoint* Ia::find_point(std::uint64_t qualifier) {
    const std::lock_guard lock(mutex_);
    for (Object* object : objects_) {
        if (object->kind() == Kind::psp || object->kind() == Kind::rsp) {
            auto* const point = static_cast<ServicePoint*>(object);
            if (point->qualifier() == qualifier) {
                return point;
            }
        }
    }
    return nullptr;
}

Return Ia::memory_of_window(std::uint32_t rmr_context, std::uint64_t address, std::uint64_t length,
                            std::uint32_t& lmr_context) {
    const std::lock_guard lock(mutex_);
    for (Object* object : objects_) {
        if (object->kind() != Kind::rmr) {
            continue;
        }
        const Rmr& rmr = *static_cast<Rmr*>(object);
        if (rmr_context == 0 || rmr.rmr_context() != rmr_context) {
            continue;
        }
        const Rmr::Bound& bound = rmr.bound;
        if (address < bound.address || address - bound.address > bound.length ||
            length > bound.length - (address - bound.address)) {
            return bad_argument(2);
        }
        lmr_context = bound.lmr_context;
        return kSuccess;
    }
    return fail(Type::privileges_violation);
}

void Ia::end_all() {
    for_each<Cno>(Kind::cno, [](Cno* cno) { cno->end_agent(); });
    for (const Kind kind : {Kind::psp, Kind::rsp, Kind::csp}) {
        for_each<ServicePoint>(kind, [](ServicePoint* point) { point->free(); });
    }
    for_each<Cr>(Kind::cr, [](Cr* cr) { cr->refuse(); });
    for_each<Ep>(Kind::ep, [](Ep* ep) { ep->free(); });
    for_each<Srq>(Kind::srq, [](Srq* srq) { srq->free(); });
    for_each<Rmr>(Kind::rmr, [](Rmr* rmr) { rmr->free(); });
    for_each<Lmr>(Kind::lmr, [](Lmr* lmr) { lmr->free(); });
    for_each<Pz>(Kind::pz, [](Pz* pz) { pz->free(); });
    for_each<Evd>(Kind::evd, [](Evd* evd) {
        evd->set_cno(nullptr);
        evd->free(); // those that are lent remain (U-68)
    });
    if (async_is_own_) { // none of those
        async_evd_->set_cno(nullptr);
    }
    for_each<Cno>(Kind::cno, [](Cno* cno) { cno->free(); });
}

} // namespace dat::shim
