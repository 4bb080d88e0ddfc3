// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Registered memory of a domain: the only memory that a peer can touch. One
// 32-bit key space for every link. The domain's lock guards it.
#ifndef DAT_ENGINE_MR_TABLE_H
#define DAT_ENGINE_MR_TABLE_H

#include "base/list.h"
#include "core/completion.h"

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace dat::engine {

// What a peer may do with a region; a bit set.
enum Access : std::uint8_t {
    kRemoteRead = 1,
    kRemoteWrite = 2,
    kRemoteInvalidate = 4, // a Send with Invalidate may end the registration
};

// A memory window (RMR): part of a region under a key of its own, which a request of an
// endpoint binds (RMR-2). Of its keys only one is bound; others wait for their requests.
class Window {
  public:
    // `shown`: where the bound key is written to for the program; `none`: what is written
    // there while it is unbound.
    Window(std::uint64_t& shown, std::uint64_t none) : shown_(shown), none_(none) { shown = none; }
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;

    std::uint32_t key() const { return key_; } // 0: unbound

  private:
    friend class MrTable;
    void set(std::uint32_t key);

    std::uint64_t& shown_;
    const std::uint64_t none_;
    std::uint32_t key_ = 0;
    std::vector<std::uint32_t> waiting_;
};

// Makes what peers have written last: 0, or it could not. Under the lock.
struct Flusher {
    int (*flush)(void* context, void* address, std::size_t length) = nullptr;
    void* context = nullptr;
};

// A registered range. Plain data; the table keeps a copy.
struct Region {
    std::byte* base = nullptr;
    std::uint64_t length = 0;        // bytes
    std::uint64_t address = 0;       // how a peer calls `base`: its virtual address, or 0
    const void* zone = nullptr;      // protection zone; an endpoint of another is refused
    std::uint8_t access = 0;         // of Access
    core::Counter* reads = nullptr;  // of peers' RDMA reads that were answered
    core::Counter* writes = nullptr; // of peers' RDMA writes that were placed
    bool flushes = false;            // set_flusher()
    bool sparse = false;             // not all of it is mapped: each access asks the kernel
    bool announced = false;          // of a message that the peer reads: not the program's
    std::uint32_t windows = 0;       // keys of windows that are cut from it
    // Of a window: whose it is, the key of the region, and its rights once it is bound.
    Window* window = nullptr;
    std::uint32_t cut_from = 0;
    std::uint8_t access_if_bound = 0;

    // As a number: a sparse region begins at no object.
    std::byte* at(std::uint64_t offset) const {
        return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(base) + offset);
    }
};

// Why an access was refused (RFC 5040 7.1, in the order of its checks).
enum class Refusal : std::uint8_t { none, unknown_key, wrong_zone, no_right, out_of_range };

struct Target {
    std::byte* at = nullptr; // nullptr: refused
    Refusal why = Refusal::none;
};

// Who has to know that a region, or window, has gone.
class RegionWatcher : public base::Hook<RegionWatcher> {
  public:
    virtual void region_gone() = 0;

  protected:
    ~RegionWatcher() = default;
};

// Who gives windows their keys, where the table does not: a device. Told of each that is
// dead.
class WindowKeeper {
  public:
    virtual void window_gone(std::uint32_t key) = 0;

  protected:
    ~WindowKeeper() = default;
};

class MrTable {
  public:
    static constexpr std::uint64_t kKeyLimit = std::uint64_t{1} << 32;
    // What a key of 8 bytes is on the wire: one of 4 is itself. Of two that differ in the upper
    // half only, or in the lower only, it differs; else it may be the same.
    static constexpr std::uint32_t short_key(std::uint64_t key) {
        constexpr std::uint32_t kOdd = 0x9e3779b1;
        return static_cast<std::uint32_t>(key) + static_cast<std::uint32_t>(key >> 32) * kOdd;
    }
    // FI_DAT_FLUSHED; no address of a program has it.
    static constexpr std::uint64_t kFlushed = std::uint64_t{1} << 63;

    // Registers under `key`; false where that key is taken.
    bool add(std::uint32_t key, const Region& region) {
        return regions_.emplace(key, region).second;
    }
    // Registers under a random free key and returns it.
    std::uint32_t add(const Region& region);
    // From here on no peer reaches the region, or window. False: no such key, or windows
    // are cut from it.
    bool remove(std::uint32_t key);
    // nullptr: no such key. Valid until something is added.
    const Region* region(std::uint32_t key) const;

    // A random free key for `what`, of the zone and memory of `cut_from`, which has to be
    // a region's; no peer reaches it before bind(). Of length 0: bind() will unbind the
    // window, and the key is never one. `key`: another one than a random one, which is
    // free. Throws std::bad_alloc.
    std::uint32_t prepare(Window& window, const Region& what, std::uint32_t cut_from,
                          std::uint32_t key = 0);
    // RMR-5: the key is the window's, and the one before is dead. Nothing where the window
    // has been closed, or the key is dead.
    void bind(std::uint32_t key);
    // RMR-6: the key that prepare() gave is dead, whether bind() was called or not.
    void spoil(std::uint32_t key);
    // RMR-10: all its keys are dead.
    void close(Window& window);

    // The memory behind `length` bytes at `address` of `key`, if an endpoint of
    // `zone` may use it with `access`. A range of length 0 is checked for key,
    // zone and right as well.
    Target find(std::uint32_t key, std::uint64_t address, std::uint64_t length, std::uint8_t access,
                const void* zone);

    std::size_t size() const { return regions_.size(); }

    // From here on find() asks the kernel whether the memory is there still, and refuses it
    // otherwise (Refusal::out_of_range): FI_DAT_CHECK_BUFFERS.
    void look_first() { looks_ = true; }

    // From here on it is told of each remove() before that returns.
    void watch(RegionWatcher& watcher) { watchers_.push(watcher); }
    void keep_windows(WindowKeeper& keeper) { keeper_ = &keeper; }
    void unwatch(RegionWatcher& watcher) { watchers_.remove(watcher); }

    // From here on what is found for peers' writes is flushed before a read of the region at an
    // address with kFlushed is answered. No function: no more. False: no such key. Throws
    // std::bad_alloc.
    bool set_flusher(std::uint32_t key, const Flusher& flusher);

    // Binds counters to a region; nullptr leaves that as it is. False: no such key.
    bool count(std::uint32_t key, core::Counter* reads, core::Counter* writes);
    // Regions may have counters: the two below have something to do.
    bool counts() const { return counts_; }
    bool is_announced(std::uint32_t key) const;
    void count_read(std::uint32_t key) const;
    void count_write(std::uint32_t key) const;

  private:
    // A region that flushes, and what has been written to it since.
    struct Durable {
        Flusher flusher;
        std::byte* begin = nullptr;
        std::byte* end = nullptr; // as `begin`: nothing
    };
    Durable* durable_of(const Region& region, std::uint32_t key);
    bool note_written(const Region& region, std::uint32_t key, std::uint64_t offset,
                      std::uint64_t length, std::uint8_t access);
    bool flush_written(const Region& region, std::uint32_t key);
    static Target find_looked_at(const Region& region, std::uint32_t key, std::uint64_t offset,
                                 std::uint64_t length, std::uint8_t access);

    bool looks_ = false;
    bool counts_ = false; // count() was called
    std::unordered_map<std::uint32_t, Region> regions_;
    std::unordered_map<std::uint32_t, Durable> durable_; // of those that flush
    base::List<RegionWatcher, RegionWatcher> watchers_;
    WindowKeeper* keeper_ = nullptr;
};

} // namespace dat::engine

#endif
