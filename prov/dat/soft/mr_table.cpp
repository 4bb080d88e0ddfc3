// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See mr_table.h. May include: soft, system headers.
#include "soft/mr_table.h"

#include "soft/random.h"

namespace dat::soft {

std::uint32_t MrTable::add(const Region& region) {
    for (;;) { // ends: there is memory for far fewer than 2^32 regions
        const auto key = static_cast<std::uint32_t>(random_bits());
        if (key != 0 && add(key, region)) {
            return key;
        }
    }
}

Target MrTable::find(std::uint32_t key, std::uint64_t address, std::uint64_t length,
                     std::uint8_t access, const void* zone) const {
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
    const std::uint64_t offset = address - region.address; // wraps below: then it is too large
    if (offset > region.length || length > region.length - offset) {
        return {nullptr, Refusal::out_of_range};
    }
    return {region.base + offset, Refusal::none};
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

} // namespace dat::soft
