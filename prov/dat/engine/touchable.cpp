// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See touchable.h.
#include "engine/touchable.h"

#include "engine/kernel.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

namespace dat::engine {
namespace {

// Since Linux 5.14; headers may be older than the kernel.
constexpr int kPopulateRead = 22;
constexpr int kPopulateWrite = 23;

// About where the list of mappings takes no longer than touching.
constexpr std::uint64_t kTouched = std::uint64_t{4} << 20;

std::uintptr_t page_size() {
    static const auto size = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    return size;
}

std::uintptr_t page_of(std::uintptr_t address) { return address & ~(page_size() - 1); }

Untouchable untouchable(std::uintptr_t address, Untouchable::Why why) {
    return {why, page_of(address), {}};
}

// Touches each page. 0 or an errno value.
int populate(std::uintptr_t first, std::uintptr_t last, Touch how) {
    const std::uintptr_t begin = page_of(first);
    const int advice = how == Touch::write ? kPopulateWrite : kPopulateRead;
    int rc = 0;
    do {
        rc = madvise(reinterpret_cast<void*>(begin), last - begin + 1, advice);
    } while (rc != 0 && errno == EINTR);
    return rc == 0 ? 0 : errno;
}

// The kernel has no such advice, or does not let this process ask.
bool cannot_populate() {
    char own = 0;
    const auto address = reinterpret_cast<std::uintptr_t>(&own);
    return populate(address, address, Touch::read) != 0;
}

// Whether a file that is mapped there has no such page: the kernel copies a byte of it.
bool has_no_page(std::uintptr_t address) {
    char byte = 0;
    const iovec to{&byte, 1};
    const iovec from{reinterpret_cast<void*>(address), 1};
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) < 0 && errno == EFAULT;
}

struct Mapping {
    std::uintptr_t first = 0;
    std::uintptr_t end = 0;
    std::string_view rights; // "rw-p"
    bool file = false;       // contents come from one, also from one in memory
};

// "7f0000000000-7f0000001000 rw-p 00000000 08:01 1234  /path"
bool parse(std::string_view line, Mapping& mapping) {
    const char* const end = line.data() + line.size();
    const auto first = std::from_chars(line.data(), end, mapping.first, 16);
    if (first.ec != std::errc() || first.ptr == end || *first.ptr != '-') {
        return false;
    }
    const auto last = std::from_chars(first.ptr + 1, end, mapping.end, 16);
    if (last.ec != std::errc() || end - last.ptr < 6) {
        return false;
    }
    mapping.rights = {last.ptr + 1, 4};
    std::string_view rest(last.ptr + 6, static_cast<std::size_t>(end - last.ptr - 6));
    for (int field = 0; field < 2; ++field) { // offset, device
        rest.remove_prefix(std::min(rest.find(' ') + 1, rest.size()));
    }
    mapping.file = !rest.starts_with("0 ") && rest != "0";
    return true;
}

// Calls visit(const Mapping&) for each mapping of the process, in order, until that returns
// false. False: the list cannot be read. A path in it may be as long as it likes.
template <class Visit> bool each_mapping(Visit&& visit) {
    // Not /proc/self, which has nothing once the first thread has ended.
    const kernel::NoCancel within;
    const int fd = ::open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    std::array<char, 4096> part;
    std::array<char, 160> line; // all but the path
    std::size_t size = 0;
    bool more = true;
    ssize_t n = 0;
    while (more && ((n = read(fd, part.data(), part.size())) > 0 || (n < 0 && errno == EINTR))) {
        for (ssize_t i = 0; more && i < n; ++i) {
            const char c = part[static_cast<std::size_t>(i)];
            if (c != '\n') {
                line[size] = c;
                size = std::min(size + 1, line.size() - 1);
                continue;
            }
            Mapping mapping;
            more = !parse({line.data(), size}, mapping) || visit(mapping);
            size = 0;
        }
    }
    close(fd);
    return n >= 0;
}

// The first page of a mapped file that is not there, of those from `first` to `last`, which is in
// one.
std::uintptr_t first_without(std::uintptr_t first, std::uintptr_t last) {
    std::uintptr_t low = page_of(first);
    std::uintptr_t high = page_of(last);
    while (low < high) {
        const std::uintptr_t middle = page_of(low + (high - low) / 2);
        if (has_no_page(middle)) {
            high = middle;
        } else {
            low = middle + page_size();
        }
    }
    return low;
}

// By the list of mappings. False: it cannot be read.
bool look_up(std::uintptr_t first, std::uintptr_t last, Touch how, Untouchable& bad) {
    std::uintptr_t at = first;
    bool all = false;
    const bool known = each_mapping([&](const Mapping& mapping) {
        if (mapping.end <= at) {
            return true;
        }
        if (mapping.first > at) { // a hole
            return false;
        }
        if (how == Touch::write ? mapping.rights[1] != 'w' : mapping.rights[0] != 'r') {
            bad = untouchable(at, Untouchable::Why::no_right);
            mapping.rights.copy(bad.rights.data(), bad.rights.size() - 1);
            return false;
        }
        const std::uintptr_t here = std::min(last, mapping.end - 1);
        if (mapping.file && has_no_page(here)) {
            bad = untouchable(first_without(at, here), Untouchable::Why::no_page);
            return false;
        }
        at = mapping.end;
        all = here == last;
        return !all;
    });
    if (known && !bad && !all) {
        bad = untouchable(at, Untouchable::Why::not_mapped);
    }
    return known;
}

} // namespace

Untouchable find_untouchable(std::uintptr_t address, std::uint64_t length, Touch how) {
    if (length == 0) {
        return {};
    }
    const std::uintptr_t last = address + (length - 1);
    if (last < address) { // nothing is ever mapped at the end of the address space
        return untouchable(UINTPTR_MAX, Untouchable::Why::not_mapped);
    }
    const bool touched = length <= kTouched;
    int error = touched ? populate(address, last, how) : 0;
    if (touched && error == 0) {
        return {};
    }
    Untouchable bad;
    if (look_up(address, last, how, bad)) {
        if (!bad && error == EFAULT) { // touching it would raise SIGBUS
            bad = untouchable(address, Untouchable::Why::no_page);
        }
        return bad;
    }
    if (!touched) {
        error = populate(address, last, how);
    }
    if (error == 0 || cannot_populate()) {
        return {};
    }
    return untouchable(address, Untouchable::Why::unsaid);
}

bool copy_if_readable(std::byte* to, const std::byte* from, std::size_t size) {
    const iovec there{to, size};
    const iovec here{const_cast<std::byte*>(from), size};
    const ssize_t n = process_vm_readv(getpid(), &there, 1, &here, 1, 0);
    if (n >= 0 || errno == EFAULT) {
        return n == static_cast<ssize_t>(size);
    }
    std::memcpy(to, from, size);
    return true;
}

Explanation explain(const Untouchable& bad, Touch how) {
    const char* what = "";
    switch (bad.why) {
    case Untouchable::Why::none:
    case Untouchable::Why::not_mapped:
        what = "nothing is mapped there";
        break;
    case Untouchable::Why::no_right:
        what = "it is mapped ";
        break;
    case Untouchable::Why::no_page:
        what = "the file that is mapped there has no such page, or there is no memory for it";
        break;
    case Untouchable::Why::unsaid:
        what = "or one behind it; the kernel does not say why";
        break;
    }
    Explanation words;
    std::snprintf(words.text.data(), words.text.size(), "page 0x%" PRIxPTR " cannot be %s: %s%s",
                  bad.page, how == Touch::write ? "written" : "read", what, bad.rights.data());
    return words;
}

} // namespace dat::engine
