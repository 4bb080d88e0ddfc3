// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Memory that cannot be touched as asked, and memory that can, of each kind, for tests of what
// registers or uses memory.
#ifndef DAT_TEST_ATTACK_MEMORY_KINDS_H
#define DAT_TEST_ATTACK_MEMORY_KINDS_H

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace dat::test {

// A range of addresses, and the mapping that it lies in, which ends with it.
class Range {
  public:
    Range(std::string name, std::uintptr_t at, std::size_t length)
        : what(std::move(name)), address(at), size(length) {}
    // All of a mapping; its owner.
    Range(std::string name, void* mapping, std::size_t length)
        : what(std::move(name)), address(reinterpret_cast<std::uintptr_t>(mapping)), size(length),
          mapping_(mapping) {}
    Range(Range&& other) noexcept
        : what(std::move(other.what)), address(other.address), size(other.size),
          mapping_(std::exchange(other.mapping_, nullptr)) {}
    ~Range() {
        if (mapping_)
            munmap(mapping_, size);
    }
    std::uint8_t* data() const { return reinterpret_cast<std::uint8_t*>(address); }

    const std::string what;
    const std::uintptr_t address;
    const std::size_t size;

  private:
    void* mapping_ = nullptr;
};

inline std::size_t page_size() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

inline void* map_anonymous(std::size_t size, int rights, int flags = MAP_PRIVATE) {
    void* const memory = mmap(nullptr, size, rights, flags | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? nullptr : memory;
}

// The same where the kernel lays nothing unasked, so that what is unmapped there stays so: it takes
// the highest gap that is large enough.
inline std::uint8_t* map_aside(std::size_t size) {
    static std::uintptr_t next = std::uintptr_t{1} << (sizeof(void*) == 8 ? 45 : 29);
    void* const memory = mmap(reinterpret_cast<void*>(next), size, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    next += 2 * size;
    return memory == MAP_FAILED ? nullptr : static_cast<std::uint8_t*>(memory);
}

// A file in memory of `length` bytes, mapped as far as `size`.
inline void* map_file(std::size_t length, std::size_t size, int rights, int flags = MAP_SHARED) {
    const int fd = memfd_create("dat-test", MFD_CLOEXEC);
    void* memory = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, static_cast<off_t>(length)) == 0)
        memory = mmap(nullptr, size, rights, flags, fd, 0);
    close(fd);
    return memory == MAP_FAILED ? nullptr : memory;
}

// The kinds that can be neither read nor written in whole; each of about `size` bytes.
inline std::vector<Range> untouchable(std::size_t size) {
    const std::size_t page = page_size();
    std::vector<Range> all;
    void* const gone = map_aside(size);
    munmap(gone, size);
    all.emplace_back("unmapped", reinterpret_cast<std::uintptr_t>(gone), size);
    all.emplace_back("PROT_NONE", map_anonymous(size, PROT_NONE), size);
    all.emplace_back("behind the end of a file",
                     map_file(size - page, size, PROT_READ | PROT_WRITE), size);
    all.emplace_back("behind the end of a file that is private",
                     map_file(size - page, size, PROT_READ | PROT_WRITE, MAP_PRIVATE), size);
    auto* const partly = map_aside(size + 2 * page);
    munmap(partly + size / 2 / page * page, page);
    all.emplace_back("with a hole", static_cast<void*>(partly), size + 2 * page);
    auto* const torn = static_cast<std::uint8_t*>(map_anonymous(size, PROT_READ | PROT_WRITE));
    mprotect(torn + size - page, page, PROT_NONE);
    all.emplace_back("with a last page of PROT_NONE", static_cast<void*>(torn), size);
    all.emplace_back("around the end of the address space", UINTPTR_MAX - 100, size);
    all.emplace_back("at the end of the address space", UINTPTR_MAX - size + 1, size);
    return all;
}

// The kinds that can be read and not be written.
inline std::vector<Range> read_only(std::size_t size) {
    std::vector<Range> all;
    all.emplace_back("read-only", map_anonymous(size, PROT_READ), size);
    all.emplace_back("a read-only file", map_file(size, size, PROT_READ), size);
    auto* const half = static_cast<std::uint8_t*>(map_anonymous(size, PROT_READ | PROT_WRITE));
    mprotect(half + size / 2 / page_size() * page_size(), page_size(), PROT_READ);
    all.emplace_back("with a page that is read-only", static_cast<void*>(half), size);
    return all;
}

// The kinds that can be read and written.
inline std::vector<Range> touchable(std::size_t size) {
    std::vector<Range> all;
    constexpr int kBoth = PROT_READ | PROT_WRITE;
    all.emplace_back("anonymous", map_anonymous(size, kBoth), size);
    all.emplace_back("shared", map_anonymous(size, kBoth, MAP_SHARED), size);
    all.emplace_back("a file", map_file(size, size, kBoth), size);
    all.emplace_back("a file that is private", map_file(size, size, kBoth, MAP_PRIVATE), size);
    all.emplace_back("a file that ends within the last page",
                     map_file(size - page_size() + 1, size, kBoth), size);
    auto* const pieces = static_cast<std::uint8_t*>(map_anonymous(size, kBoth));
    madvise(pieces, size / 2 / page_size() * page_size(), MADV_DONTFORK); // two mappings
    all.emplace_back("of two mappings", static_cast<void*>(pieces), size);
    constexpr std::size_t kHuge = std::size_t{2} << 20;
    const std::size_t huge = (size + kHuge - 1) / kHuge * kHuge;
    void* const pages =
        mmap(nullptr, huge, kBoth, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    if (pages != MAP_FAILED)
        all.emplace_back("of huge pages", pages, huge);
    return all;
}

// Bytes of this process that are in memory.
inline std::size_t resident() {
    std::size_t all = 0;
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> all >> pages;
    return pages * page_size();
}

} // namespace dat::test

#endif
