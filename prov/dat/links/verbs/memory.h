// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Memory as a device sees it: what the program has registered, looked up by address, and
// what it has not, registered for as long as an operation takes. Under the domain's lock.
#ifndef DAT_LINKS_VERBS_MEMORY_H
#define DAT_LINKS_VERBS_MEMORY_H

#include <cstddef>
#include <cstdint>
#include <map>

struct ibv_mr;
struct ibv_pd;

namespace dat::verbs {

class Memory {
  public:
    Memory() = default;
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    // Registers; `access` of ibv_access_flags. nullptr: errno.
    ibv_mr* add(ibv_pd* pd, void* base, std::size_t length, int access);
    void remove(ibv_mr* mr); // deregisters

    // What names it among all: the remote key, or the local one of memory that no peer may
    // reach, which some devices (rxe) give no remote key.
    static std::uint32_t key_of(const ibv_mr& mr);
    // The registered one with that key, which begins at `base`; nullptr: there is none.
    // `writable`: with IBV_ACCESS_LOCAL_WRITE.
    ibv_mr* region(const void* base, std::uint32_t key, bool writable);
    // The descriptor of a region (fi_mr_desc(3)), by which operations name it. While it stands.
    void* name_of(const ibv_mr* mr);
    // A region, with what a post has to compare beside it.
    struct Entry {
        ibv_mr* mr;
        const ibv_pd* pd;
        std::uintptr_t start;
        std::size_t length;
        int access;
        std::uint32_t lkey;

        bool covers(const ibv_pd* of, const void* base, std::size_t size, int wanted) const {
            const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(base) - start;
            return of == pd && offset <= length && size <= length - offset &&
                   (wanted & ~access) == 0;
        }
    };
    // What an operation names, if it has all of the range and of `access`; else, and where it
    // names nothing, a region of `pd` that does; nullptr: none was found. What is found by
    // address the program may end before the operation does, where its memory is registered
    // more than once: so names come first.
    const Entry* named(const void* name, const ibv_pd* pd, const void* base, std::size_t length,
                       int access) {
        const Entry* const entry = only_named(name, pd, base, length, access);
        return entry ? entry : find(pd, base, length, access);
    }
    // The same in two steps.
    static const Entry* only_named(const void* name, const ibv_pd* pd, const void* base,
                                   std::size_t length, int access) {
        const auto* const entry = static_cast<const Entry*>(name);
        return entry && entry->covers(pd, base, length, access) ? entry : nullptr;
    }
    const Entry* find(const ibv_pd* pd, const void* base, std::size_t length, int access);

  private:
    std::multimap<std::uintptr_t, Entry> regions_; // by address
    // What was found last: of memory that is read, and of memory that is written.
    const Entry* found_[2] = {};
};

} // namespace dat::verbs

#endif
