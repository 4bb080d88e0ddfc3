// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See ia.h. May include: dat-shim, libfabric.
#include "dat-shim/ia.h"

#include "dat-shim/cno.h"
#include "dat-shim/cr.h"
#include "dat-shim/ep.h"
#include "dat-shim/evd.h"
#include "dat-shim/service_point.h"
#include "dat-shim/srq.h"

#include <rdma/fi_errno.h>

#include <algorithm>

namespace dat::shim {

Ia::Ia(std::string name, Info info, const void* dispatch)
    : Object(*this, kKind, dispatch), name_(std::move(name)), info_(std::move(info)),
      dispatch_(dispatch) {}

Ia::~Ia() {
    for (const Buried& buried : buried_) {
        delete buried.object;
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
    Info info = offer_of(opening.device);
    if (!info) {
        return fail(Type::provider_not_found, Sub::name_not_registered);
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
    if (!async_evd_->add_stream()) {
        async_evd_ = nullptr;
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
    buried_.push_back({&ep, now});
    dig_up(now);
}

void Ia::dig_up(std::chrono::steady_clock::time_point now) {
    const auto young = std::ranges::find_if(
        buried_, [now](const Buried& one) { return now - one.since < std::chrono::seconds(1); });
    for (auto one = buried_.begin(); one != young; ++one) {
        delete one->object;
    }
    buried_.erase(buried_.begin(), young);
}

bool Ia::only_own_objects() {
    const std::lock_guard lock(mutex_);
    return objects_.empty(); // the own asynchronous EVD is none of them
}

Return Ia::may_close(bool graceful) {
    return graceful && !only_own_objects() ? fail(Type::invalid_state, Sub::invalid_state_ia_in_use)
                                           : kSuccess;
}

void Ia::close() {
    close_abruptly();
    delete this;
}

// Calls it for each object of the kind, which may vanish meanwhile.
template <class T, class Call> void Ia::for_each(Kind kind, Call&& call) {
    std::vector<T*> found;
    {
        const std::lock_guard lock(mutex_);
        for (Object* object : objects_) {
            if (object->kind() == kind) {
                found.push_back(static_cast<T*>(object));
            }
        }
    }
    std::ranges::for_each(found, call);
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

void Ia::close_abruptly() {
    for_each<Cno>(Kind::cno, [](Cno* cno) { cno->abort_waiters(); });
    for_each<Evd>(Kind::evd, [](Evd* evd) { evd->abort_waiters(); });
    if (async_is_own_) {
        async_evd_->abort_waiters();
    }
    for (const Kind kind : {Kind::psp, Kind::rsp, Kind::csp}) {
        for_each<ServicePoint>(kind, [](ServicePoint* point) { point->free(); });
    }
    for_each<Cr>(Kind::cr, [](Cr* cr) { cr->refuse(); });
    for_each<Ep>(Kind::ep, [](Ep* ep) { ep->free(); });
    for_each<Srq>(Kind::srq, [](Srq* srq) { srq->free(); });
    for_each<Rmr>(Kind::rmr, [](Rmr* rmr) { rmr->free(); });
    for_each<Lmr>(Kind::lmr, [](Lmr* lmr) { lmr->free(); });
    for_each<Pz>(Kind::pz, [](Pz* pz) { pz->free(); });
    for_each<Evd>(Kind::evd, [](Evd* evd) { evd->free(); });
    for_each<Cno>(Kind::cno, [](Cno* cno) { cno->free(); });
}

} // namespace dat::shim
