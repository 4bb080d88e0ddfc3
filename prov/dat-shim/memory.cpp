// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See memory.h.
#include "dat-shim/memory.h"

#include "base/attempt.h"
#include "base/reserve.h"
#include "dat-shim/ia.h"
#include "dat-shim/reason.h"
#include "engine/kernel.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext_dat.h>

#include <algorithm>
#include <fstream>
#include <new>
#include <sstream>
#include <string>
#include <utility>

namespace dat::shim {
namespace {

constinit std::atomic<std::uint64_t> g_next_zone{1}; // 0: an endpoint that has none
constexpr std::size_t kRest = 1024; // removed regions whose place is not used again yet

} // namespace

Pz::Pz(Ia& ia) : Object(ia, kKind, ia.dispatch()), key_(g_next_zone++) {}

Return Pz::create(Ia& ia, Pz*& pz) {
    pz = ia.make<Pz>(ia);
    return kSuccess;
}

Return Pz::free() {
    if (users.load() > 0) {
        return fail(Type::invalid_state, Sub::invalid_state_pz_in_use);
    }
    ia().destroy(*this);
    return kSuccess;
}

// --- LmrTable ------------------------------------------------------------------

void LmrTable::Entry::copy(const Entry& other) {
    end = other.end;
    length = other.length;
    shift = other.shift;
    pz = other.pz;
    lmr = other.lmr;
    privileges = other.privileges;
    context = other.context.load();
    to_read = other.to_read.load();
    to_write = other.to_write.load();
}

LmrTable::LmrTable() {
    tables_.push_back(std::make_unique<Entry[]>(kFirstEntries));
    tables_.back()[0].context = ~std::uint32_t{0}; // of index 0, which no region has
    entries_ = tables_.back().get();
    mask_ = kFirstEntries - 1;
}

LmrTable::~LmrTable() = default;

// Twice as many. Who reads meanwhile may do so in the old table, which has what he may know; the
// mask is written last and read first, so that it is never that of a larger table.
void LmrTable::grow() {
    const std::uint32_t count = mask_ + 1;
    tables_.reserve(tables_.size() + 1);
    auto larger = std::make_unique<Entry[]>(std::size_t{count} * 2);
    for (std::uint32_t i = 0; i < count; ++i) {
        larger[i].copy(tables_.back()[i]);
    }
    tables_.push_back(std::move(larger));
    entries_.store(tables_.back().get(), std::memory_order_release);
    mask_.store(count * 2 - 1, std::memory_order_release);
}

std::uint32_t LmrTable::add(const Region& what) {
    const std::lock_guard lock(mutex_);
    Free place{};
    if (free_.size() > kRest || (used_ + 1 == kEntries && !free_.empty())) {
        place = free_.front();
        free_.erase(free_.begin());
    } else if (used_ + 1 < kEntries) {
        if (used_ == mask_) {
            grow();
        }
        base::reserve_for(free_, std::size_t{used_} + 1); // remove() has room for all of them
        place = {++used_, 1}; // index 0 is never used: a context of 0 is none
    } else {
        return 0;
    }
    const std::uint32_t context = place.index << kGenerationBits | place.generation;
    const Pass pass = LmrTable::pass(what.pz->pass(), context);
    const auto if_allowed = [&](std::uint32_t right) {
        return (what.privileges & right) != 0 ? pass : 0;
    };
    Entry& entry = tables_.back()[place.index];
    entry.end = what.first + what.length;
    entry.length = what.length;
    entry.shift = what.shift;
    entry.pz = what.pz;
    entry.lmr = what.lmr;
    entry.privileges = what.privileges;
    entry.context.store(context, std::memory_order_release);
    entry.to_read.store(if_allowed(privilege::kLocalRead), std::memory_order_release);
    entry.to_write.store(if_allowed(privilege::kLocalWrite), std::memory_order_release);
    return context;
}

void LmrTable::remove(std::uint32_t context) {
    const std::lock_guard lock(mutex_);
    const std::uint32_t index = context >> kGenerationBits;
    Entry& entry = tables_.back()[index];
    entry.to_read.store(0, std::memory_order_release);
    entry.to_write.store(0, std::memory_order_release);
    entry.context.store(0, std::memory_order_release);
    constexpr std::uint32_t kGenerations = (1U << kGenerationBits) - 1;
    free_.push_back({index, (context & kGenerations) % kGenerations + 1});
}

// --- Lmr -------------------------------------------------------------------------

namespace {

// LMR-1: whether the whole range is mapped shared (/proc/self/maps).
bool is_shared(const std::byte* address, std::uint64_t length) {
    const kernel::NoCancel while_reading;
    std::ifstream maps("/proc/self/maps");
    std::uint64_t at = reinterpret_cast<std::uintptr_t>(address);
    const std::uint64_t end = at + length;
    for (std::string line; at < end && std::getline(maps, line);) {
        std::istringstream words(line);
        std::uint64_t first = 0;
        std::uint64_t last = 0;
        char dash = 0;
        std::string rights;
        words >> std::hex >> first >> dash >> last >> rights;
        if (first > at) {
            break; // a hole
        }
        if (at < last) {
            if (rights.size() < 4 || rights[3] != 's') {
                return false;
            }
            at = last;
        }
    }
    return at >= end;
}

} // namespace

Lmr::Lmr(Ia& ia, const Asked& what) : Object(ia, kKind, ia.dispatch()), asked(what) {
    ++asked.pz->users;
}

Lmr::~Lmr() { --asked.pz->users; }

Return Lmr::create(Ia& ia, Asked asked, Lmr*& lmr) {
    if ((asked.privileges & ~privilege::kAll) != 0) {
        return because(bad_argument(6), "privileges of 0x%x: within 0x%x", asked.privileges,
                       privilege::kAll);
    }
    if (asked.type == MemoryType::lmr) {
        asked.address = asked.other->asked.address;
        asked.length = asked.other->asked.length;
    }
    if (asked.length == 0) { // U-55
        return because(bad_argument(4), "a length of 0");
    }
    if (!asked.address) {
        return because(bad_argument(3), "memory at NULL");
    }
    if (asked.type == MemoryType::shared && !is_shared(asked.address, asked.length)) {
        return because(fail(Type::invalid_state), "not all of the memory is shared");
    }
    if (asked.zero_based && !ia.can().zero_based) {
        return because(fail(Type::model_not_supported), "zero-based memory, which \"%s\" has not",
                       ia.info().domain_attr->name);
    }
    lmr = ia.make<Lmr>(ia, asked);
    lmr->source_handle = asked.other ? asked.other->handle() : nullptr;
    Return rc = fail(Type::insufficient_resources, Sub::resource_memory);
    (void)base::attempt([&] { rc = lmr->open(); });
    if (rc) {
        if (lmr->region_) {
            fi_close(&lmr->region_->fid);
        }
        ia.destroy(*lmr);
    }
    return rc;
}

namespace {

Return open_failure(int rc) {
    switch (rc) {
    case -FI_EINVAL:
        return bad_argument(3);
    case -FI_EFAULT: // U-72
        return fail(Type::invalid_address);
    default:
        return fail(Type::insufficient_resources, Sub::resource_memory_region);
    }
}

} // namespace

Return Lmr::open() {
    if (asked.cookie) {
        std::copy_n(asked.cookie, kCookieSize, cookie.begin());
        asked.cookie = cookie.data();
    }
    const iovec range{asked.address, asked.length};
    fi_mr_attr attr{};
    attr.mr_iov = &range;
    attr.iov_count = 1;
    const bool read = (asked.privileges & (privilege::kRemoteRead | privilege::kRemoteAtomic)) != 0;
    const bool write =
        (asked.privileges & (privilege::kRemoteWrite | privilege::kRemoteAtomic)) != 0;
    // A device writes to no memory that the program may not write to.
    const bool filled = (asked.privileges & privilege::kLocalWrite) != 0;
    attr.access = FI_SEND | (filled ? FI_RECV | FI_READ : 0) | (read ? FI_REMOTE_READ : 0) |
                  (write ? FI_REMOTE_WRITE : 0);
    auto key = *asked.pz->key();
    attr.auth_key = reinterpret_cast<std::uint8_t*>(&key);
    attr.auth_key_size = sizeof key;
    const int rc =
        fi_mr_regattr(ia().domain(), &attr, asked.zero_based ? FI_DAT_ZERO_BASED : 0, &region_);
    if (rc) {
        return open_failure(rc);
    }
    // Programs send from memory that they registered for local writing alone: devices do
    // not tell the two apart.
    const std::uint32_t privileges =
        asked.privileges |
        ((asked.privileges & privilege::kLocalWrite) != 0 ? privilege::kLocalRead : 0);
    const auto address = reinterpret_cast<std::uintptr_t>(asked.address);
    lmr_context_ = ia().lmrs().add(
        {first(), asked.length, asked.zero_based ? address : 0, asked.pz, this, privileges});
    if (lmr_context_ == 0) {
        return fail(Type::insufficient_resources, Sub::resource_memory_region);
    }
    if ((asked.privileges & privilege::kRemote) != 0) { // LMR-5
        rmr_context_ = static_cast<std::uint32_t>(fi_mr_key(region_));
    }
    return kSuccess;
}

std::uint64_t Lmr::first() const {
    return asked.zero_based ? 0 : reinterpret_cast<std::uintptr_t>(asked.address);
}

Return Lmr::free() {
    if (fi_close(&region_->fid) != 0) { // LMR-7: windows are bound to it
        return fail(Type::invalid_state, Sub::invalid_state_lmr_in_use);
    }
    ia().lmrs().remove(lmr_context_);
    ia().destroy(*this);
    return kSuccess;
}

// --- Rmr ---------------------------------------------------------------------------

Rmr::Rmr(Ia& ia, Pz& zone) : Object(ia, kKind, ia.dispatch()), pz(zone) { ++pz.users; }

Rmr::~Rmr() {
    if (window_) {
        fi_close(&window_->fid);
    }
    --pz.users;
}

Return Rmr::create(Pz& pz, Rmr*& rmr) {
    Ia& ia = pz.ia();
    if (!ia.can().windows) {
        return fail(Type::model_not_supported);
    }
    rmr = ia.make<Rmr>(ia, pz);
    auto key = *pz.key();
    if (ia.domain_ops().window(ia.domain(), reinterpret_cast<std::uint8_t*>(&key), sizeof key,
                               &rmr->window_, rmr) != 0) {
        rmr->window_ = nullptr;
        ia.destroy(*rmr);
        return fail(Type::insufficient_resources, Sub::resource_memory_region);
    }
    return kSuccess;
}

Return Rmr::free() {
    ia().destroy(*this);
    return kSuccess;
}

std::uint32_t Rmr::rmr_context() const {
    const std::uint64_t key = fi_mr_key(window_);
    return key == FI_KEY_NOTAVAIL ? 0 : static_cast<std::uint32_t>(key);
}

} // namespace dat::shim
