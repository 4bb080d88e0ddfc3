// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See handle.h.
#include "dat-shim/handle.h"

#include <atomic>
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

constinit std::mutex g_mutex; // guards g_free, and the growth of the arena
constinit FreeList g_free;

constexpr std::size_t kChunk = std::size_t{1} << 16; // bytes that are mapped at once
constexpr std::size_t kChunkShells = kChunk / sizeof(Shell);

// A chunk at `place`, which nothing may be mapped at; nullptr: anywhere. Or nullptr.
void* map_chunk(void* place) {
    void* const chunk =
        mmap(place, kChunk, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | (place ? MAP_FIXED_NOREPLACE : 0), -1, 0);
    if (chunk == MAP_FAILED) {
        return nullptr;
    }
    if (place && chunk != place) { // a kernel before 4.17
        munmap(chunk, kChunk);
        return nullptr;
    }
    return chunk;
}

// The first chunk of the arena. The kernel hands out addresses downwards from the highest that is
// free, so there is room to grow a good way below.
void* map_first() {
    void* const next = map_chunk(nullptr);
    if (!next) {
        return nullptr;
    }
    for (const std::size_t below : {std::size_t{1} << 36, std::size_t{1} << 32}) {
        if (void* const chunk = map_chunk(static_cast<char*>(next) - below)) {
            munmap(next, kChunk);
            return chunk;
        }
    }
    return next;
}

// One chunk more.
void grow_arena() {
    const std::size_t shells = Arena::shells.load(std::memory_order_relaxed);
    const std::uintptr_t base = Arena::base.load(std::memory_order_relaxed);
    void* const chunk = shells == 0
                            ? map_first()
                            : map_chunk(reinterpret_cast<void*>(base + shells * sizeof(Shell)));
    if (!chunk) {
        throw std::bad_alloc();
    }
    if (shells == 0) {
        Arena::base.store(reinterpret_cast<std::uintptr_t>(chunk), std::memory_order_relaxed);
    }
    Arena::shells.store(shells + kChunkShells, std::memory_order_release);
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
        if (g_free.used == Arena::shells.load(std::memory_order_relaxed)) {
            grow_arena();
        }
        shell = new (reinterpret_cast<Shell*>(Arena::base.load(std::memory_order_relaxed)) +
                     g_free.used) Shell;
        ++g_free.used;
    }
    shell->dispatch = dispatch;
    shell->object = object;
    shell->kind.store(kind, std::memory_order_release);
    return shell;
}

void give_back_shell(Shell* shell) {
    const std::lock_guard lock(g_mutex);
    shell->kind.store(Kind::none, std::memory_order_relaxed);
    shell->next = nullptr;
    (g_free.count++ == 0 ? g_free.first : g_free.last->next) = shell;
    g_free.last = shell;
}

} // namespace dat::shim
