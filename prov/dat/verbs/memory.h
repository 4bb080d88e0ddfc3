// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Memory as a device sees it: what the program has registered, looked up by address, and
// what it has not, registered for as long as an operation takes. Under the domain's gate.
// May include: std, verbs headers.
#ifndef DAT_VERBS_MEMORY_H
#define DAT_VERBS_MEMORY_H

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
    // What an operation names, if it has all of the range and of `access`; else, and where it
    // names nothing, as find(). What is found by address the program may end before the
    // operation does, where its memory is registered more than once: so names come first.
    const ibv_mr* named(const void* name, ibv_pd* pd, const void* base, std::size_t length,
                        int access) {
        if (name) [[likely]] {
            const Entry& entry = *static_cast<const Entry*>(name);
            if (covers(*entry.mr, entry.access, pd, base, length, access)) [[likely]] {
                return entry.mr;
            }
        }
        return find(pd, base, length, access);
    }
    // A region of `pd` that has all of the range and of `access`; nullptr: none was found.
    const ibv_mr* find(ibv_pd* pd, const void* base, std::size_t length, int access) {
        const Found& last = found_[access != 0];
        const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(base) - last.start;
        return pd == last.pd && offset <= last.length && length <= last.length - offset &&
                       (access & ~last.access) == 0
                   ? last.mr
                   : search(pd, base, length, access);
    }

  private:
    struct Entry {
        ibv_mr* mr;
        int access;
    };
    static bool covers(const ibv_mr& mr, int has, ibv_pd* pd, const void* base, std::size_t length,
                       int access);
    const ibv_mr* search(ibv_pd* pd, const void* base, std::size_t length, int access);

    // What was found last: of memory that is read, and of memory that is written.
    struct Found {
        const ibv_pd* pd = nullptr; // nullptr: nothing
        std::uintptr_t start = 0;
        std::size_t length = 0;
        const ibv_mr* mr = nullptr;
        int access = 0;
    };

    std::multimap<std::uintptr_t, Entry> regions_; // by address
    Found found_[2];
};

} // namespace dat::verbs

#endif
