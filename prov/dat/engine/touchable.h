// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Whether memory of this process can be touched, which the kernel is asked, so that nothing is
// raised where it cannot.
#ifndef DAT_ENGINE_TOUCHABLE_H
#define DAT_ENGINE_TOUCHABLE_H

#include <array>
#include <cstddef>
#include <cstdint>

namespace dat::engine {

enum class Touch : std::uint8_t { read, write };

// The first page of a range that cannot be touched as asked; or there is none.
struct Untouchable {
    enum class Why : std::uint8_t {
        none,
        not_mapped,
        no_right, // `rights` is what the mapping allows, as in /proc/self/maps
        no_page,  // the mapped file ends before it, or there is no memory for it
        unsaid,   // the kernel does not say which page it is, nor why
    };
    Why why = Why::none;
    std::uintptr_t page = 0;
    std::array<char, 5> rights{};

    explicit operator bool() const { return why != Why::none; }
};

// Looks for a page of `length` bytes at `address` that cannot be touched as asked. Contents stay
// as they are. Up to 4 MiB each page is touched, as a device does that pins it, so that there is
// memory behind it then; of more the kernel's list of mappings is looked at, and of a mapped file
// the last page, so that a large range that is hardly used stays so. Any thread, no lock, no
// allocation. One system call for up to 4 MiB that can be touched, some more otherwise; it takes
// as long as pages have to be read from a file. Where the kernel answers neither way nothing is
// found.
Untouchable find_untouchable(std::uintptr_t address, std::uint64_t length, Touch how);

// Copies by the kernel, so that false comes of memory that cannot be read and nothing is raised;
// `to` is spoiled then. Where the kernel has no such call, or it is not allowed, as memcpy(3).
// Takes a system call.
bool copy_if_readable(std::byte* to, const std::byte* from, std::size_t size);

// For a line of the log: which page cannot be read or written, and what is there.
struct Explanation {
    std::array<char, 128> text;
};
Explanation explain(const Untouchable& bad, Touch how);

} // namespace dat::engine

#endif
