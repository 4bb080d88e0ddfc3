// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See memory.h.
#include "memory.h"

#include <cstdio>
#include <cstring>

namespace dat::bench {
namespace {

// The line `key` of a file like /proc/meminfo, in bytes; 0: there is none.
std::uint64_t value_in(const char* path, const char* key) {
    std::FILE* file = std::fopen(path, "r");
    if (!file) {
        return 0;
    }
    char line[256];
    unsigned long long kib = 0;
    while (std::fgets(line, sizeof line, file)) {
        if (std::strncmp(line, key, std::strlen(key)) == 0) {
            std::sscanf(line + std::strlen(key), "%llu", &kib);
            break;
        }
    }
    std::fclose(file);
    return kib * 1024;
}

double grown(std::uint64_t from, std::uint64_t to, std::uint64_t count) {
    return (static_cast<double>(to) - static_cast<double>(from)) / static_cast<double>(count);
}

} // namespace

Footprint footprint() {
    return {.rss = value_in("/proc/self/smaps_rollup", "Rss:"),
            .pss = value_in("/proc/self/smaps_rollup", "Pss:"),
            .slab = value_in("/proc/meminfo", "Slab:")};
}

Memory per_endpoint(const Footprint& before, const Footprint& after, std::uint64_t count) {
    return {.rss = grown(before.rss, after.rss, count), .pss = grown(before.pss, after.pss, count)};
}

double per_socket(const Footprint& before, const Footprint& after, std::uint64_t count) {
    return grown(before.slab, after.slab, 2 * count);
}

} // namespace dat::bench
