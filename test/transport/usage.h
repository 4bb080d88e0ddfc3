// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What this process has: memory and descriptors, which must not grow from connection to
// connection.
#ifndef DAT_TEST_TRANSPORT_USAGE_H
#define DAT_TEST_TRANSPORT_USAGE_H

#include <malloc.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace dat::test {

struct Usage {
    std::size_t allocated; // bytes, as malloc counts them
    std::size_t resident;  // bytes
    std::size_t descriptors;
};

inline std::size_t open_descriptors() {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

inline std::size_t resident_memory() {
    std::ifstream file("/proc/self/statm");
    std::size_t pages = 0;
    file >> pages >> pages;
    return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

inline Usage usage() {
    const struct mallinfo2 heap = mallinfo2();
    return {heap.uordblks + heap.hblkhd, resident_memory(), open_descriptors()};
}

} // namespace dat::test

#endif
