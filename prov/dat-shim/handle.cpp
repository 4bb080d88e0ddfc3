// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See handle.h. May include: std, system headers.
#include "dat-shim/handle.h"

#include <mutex>
#include <new>
#include <sys/mman.h>

namespace dat::shim {
namespace {

constexpr std::size_t kRest = 1024; // freed shells that are not used again yet

// Trivially destructible: threads of the program may outlive the end of main().
struct FreeList {
    Shell* first = nullptr;
    Shell* last = nullptr;
    std::size_t count = 0;
    std::size_t used = 0; // shells of the arena that were ever taken
};

constinit std::mutex g_mutex; // guards g_free, and the making of the arena
constinit FreeList g_free;

void make_arena() {
    void* memory = mmap(nullptr, Arena::kSpan, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        throw std::bad_alloc();
    }
    Arena::base = reinterpret_cast<std::uintptr_t>(memory);
}

} // namespace

Shell* take_shell(const void* dispatch, Kind kind, Object* object) {
    const std::lock_guard lock(g_mutex);
    Shell* shell = nullptr;
    if (g_free.count > kRest) {
        shell = g_free.first;
        g_free.first = shell->next;
        --g_free.count;
    } else {
        if (g_free.used == 0) {
            make_arena();
        }
        if (g_free.used == Arena::kSpan / sizeof(Shell)) {
            throw std::bad_alloc();
        }
        shell = new (reinterpret_cast<Shell*>(Arena::base) + g_free.used) Shell;
        ++g_free.used;
    }
    *shell = {dispatch, object, kind, nullptr};
    return shell;
}

void give_back_shell(Shell* shell) {
    const std::lock_guard lock(g_mutex);
    shell->kind = Kind::none;
    shell->object = nullptr;
    shell->next = nullptr;
    (g_free.count++ == 0 ? g_free.first : g_free.last->next) = shell;
    g_free.last = shell;
}

} // namespace dat::shim
