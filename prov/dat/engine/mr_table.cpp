// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See mr_table.h.
#include "engine/mr_table.h"

#include "base/log.h"
#include "engine/random.h"
#include "engine/touchable.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace dat::engine {

std::uint32_t MrTable::add(const Region& region) {
    for (;;) { // ends: there is memory for far fewer than 2^32 regions
        const auto key = static_cast<std::uint32_t>(random_bits());
        if (key != 0 && add(key, region)) {
            return key;
        }
    }
}

void Window::set(std::uint32_t key) {
    key_ = key;
    // The program may be reading it in another thread.
    std::atomic_ref(shown_).store(key ? key : none_, std::memory_order_relaxed);
}

const Region* MrTable::region(std::uint32_t key) const {
    const auto found = regions_.find(key);
    return found == regions_.end() ? nullptr : &found->second;
}

bool MrTable::remove(std::uint32_t key) {
    const auto found = regions_.find(key);
    if (found == regions_.end() || found->second.windows > 0) {
        return false;
    }
    if (Window* window = found->second.window) {
        std::erase(window->waiting_, key);
        if (window->key_ == key) {
            window->set(0);
        }
        const auto source = regions_.find(found->second.cut_from);
        if (source != regions_.end()) {
            --source->second.windows;
        }
        if (keeper_) {
            keeper_->window_gone(key);
        }
    }
    durable_.erase(key);
    regions_.erase(found);
    watchers_.each([](RegionWatcher& watcher) { watcher.region_gone(); });
    return true;
}

std::uint32_t MrTable::prepare(Window& window, const Region& what, std::uint32_t cut_from,
                               std::uint32_t key) {
    Region waiting = what;
    waiting.window = &window;
    waiting.cut_from = what.length > 0 ? cut_from : 0;
    waiting.access_if_bound = std::exchange(waiting.access, std::uint8_t{0});
    window.waiting_.reserve(window.waiting_.size() + 1);
    if (key == 0) {
        key = add(waiting);
    } else {
        add(key, waiting);
    }
    window.waiting_.push_back(key);
    if (what.length > 0) {
        Region& source = regions_.find(cut_from)->second;
        ++source.windows;
        regions_.find(key)->second.flushes = source.flushes;
    }
    return key;
}

void MrTable::bind(std::uint32_t key) {
    const auto found = regions_.find(key);
    if (found == regions_.end() || !found->second.window || found->second.window->key_ == key) {
        return;
    }
    Window& window = *found->second.window;
    if (window.key_ != 0) {
        remove(window.key_);
    }
    if (found->second.length == 0) {
        remove(key);
        return;
    }
    std::erase(window.waiting_, key);
    found->second.access = found->second.access_if_bound;
    window.set(key);
}

void MrTable::spoil(std::uint32_t key) {
    const Region* found = region(key);
    if (found && found->window) {
        remove(key);
    }
}

void MrTable::close(Window& window) {
    while (!window.waiting_.empty()) {
        remove(window.waiting_.back());
    }
    if (window.key_ != 0) {
        remove(window.key_);
    }
}

Target MrTable::find(std::uint32_t key, std::uint64_t address, std::uint64_t length,
                     std::uint8_t access, const void* zone) {
    const auto found = regions_.find(key);
    if (found == regions_.end()) {
        return {nullptr, Refusal::unknown_key};
    }
    const Region& region = found->second;
    if (region.zone != zone) {
        return {nullptr, Refusal::wrong_zone};
    }
    if ((region.access & access) != access) {
        return {nullptr, Refusal::no_right};
    }
    const bool flush = region.flushes && (address & kFlushed) != 0 && access == kRemoteRead;
    const std::uint64_t offset =
        (flush ? address & ~kFlushed : address) - region.address; // wraps: then it is too large
    if (offset > region.length || length > region.length - offset) {
        return {nullptr, Refusal::out_of_range};
    }
    if (looks_ || region.sparse) [[unlikely]] {
        const Target there = find_looked_at(region, key, offset, length, access);
        if (!there.at) {
            return there;
        }
    }
    if (region.flushes) [[unlikely]] {
        if (!(flush ? flush_written(region, key)
                    : note_written(region, key, offset, length, access))) {
            return {nullptr, Refusal::no_right};
        }
    }
    return {region.at(offset), Refusal::none};
}

// A window is part of its region. nullptr: that does not flush any more.
MrTable::Durable* MrTable::durable_of(const Region& region, std::uint32_t key) {
    const auto found = durable_.find(region.window ? region.cut_from : key);
    return found == durable_.end() ? nullptr : &found->second;
}

bool MrTable::note_written(const Region& region, std::uint32_t key, std::uint64_t offset,
                           std::uint64_t length, std::uint8_t access) {
    Durable* const durable = durable_of(region, key);
    if (durable && (access & kRemoteWrite) != 0 && length > 0) {
        std::byte* const at = region.at(offset);
        const bool clean = durable->begin == durable->end;
        durable->begin = clean ? at : std::min(durable->begin, at);
        durable->end = clean ? at + length : std::max(durable->end, at + length);
    }
    return true;
}

// False: it could not be done, and is still to be.
bool MrTable::flush_written(const Region& region, std::uint32_t key) {
    Durable* const durable = durable_of(region, key);
    if (!durable || durable->begin == durable->end) {
        return true;
    }
    const auto size = static_cast<std::size_t>(durable->end - durable->begin);
    if (durable->flusher.flush(durable->flusher.context, durable->begin, size) != 0) {
        DAT_WARN(mr,
                 "a peer's read of the region 0x%x is refused: %zu bytes at %p, which peers have "
                 "written, could not be flushed",
                 key, size, static_cast<void*>(durable->begin));
        return false;
    }
    durable->begin = durable->end = nullptr;
    return true;
}

bool MrTable::set_flusher(std::uint32_t key, const Flusher& flusher) {
    const auto found = regions_.find(key);
    if (found == regions_.end()) {
        return false;
    }
    if (flusher.flush) {
        durable_[key].flusher = flusher;
    } else {
        durable_.erase(key);
    }
    found->second.flushes = flusher.flush != nullptr;
    return true;
}

Target MrTable::find_looked_at(const Region& region, std::uint32_t key, std::uint64_t offset,
                               std::uint64_t length, std::uint8_t access) {
    const Touch how = (access & kRemoteWrite) != 0 ? Touch::write : Touch::read;
    std::byte* const at = region.at(offset);
    const Untouchable bad = find_untouchable(reinterpret_cast<std::uintptr_t>(at), length, how);
    if (!bad) { // of nothing at address 0 there is none to be used either
        return {at, at ? Refusal::none : Refusal::out_of_range};
    }
    DAT_WARN(mr, "a peer uses %llu bytes at %p of the region 0x%x: %s",
             static_cast<unsigned long long>(length), static_cast<void*>(at), key,
             explain(bad, how).text.data());
    return {nullptr, Refusal::out_of_range};
}

bool MrTable::count(std::uint32_t key, core::Counter* reads, core::Counter* writes) {
    const auto found = regions_.find(key);
    if (found == regions_.end()) {
        return false;
    }
    found->second.reads = reads ? reads : found->second.reads;
    found->second.writes = writes ? writes : found->second.writes;
    counts_ = true;
    return true;
}

bool MrTable::is_announced(std::uint32_t key) const {
    const auto found = regions_.find(key);
    return found != regions_.end() && found->second.announced;
}

void MrTable::count_read(std::uint32_t key) const {
    const auto found = regions_.find(key);
    if (found != regions_.end() && found->second.reads) {
        found->second.reads->add(core::DtoStatus::success);
    }
}

void MrTable::count_write(std::uint32_t key) const {
    const auto found = regions_.find(key);
    if (found != regions_.end() && found->second.writes) {
        found->second.writes->add(core::DtoStatus::success);
    }
}

} // namespace dat::engine
