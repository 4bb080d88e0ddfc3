// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See memory.h.
#include "links/shm/memory.h"

#include "engine/endpoint.h"
#include "engine/random.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dat::shm {

namespace {

// Whether this process may write all of it: it is copied onto itself.
bool writable(std::span<const iovec> pieces) {
    for (const iovec& piece : pieces) {
        const ssize_t n = process_vm_readv(getpid(), &piece, 1, &piece, 1, 0);
        if (n != static_cast<ssize_t>(piece.iov_len)) {
            return false;
        }
    }
    return true;
}

std::size_t total(std::span<const iovec> pieces) {
    std::size_t size = 0;
    for (const iovec& piece : pieces) {
        size += piece.iov_len;
    }
    return size;
}

// A page of its own, which a child finds empty; nullptr: there is none.
std::atomic<std::uint64_t>* make_word() {
    const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void* page = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return nullptr;
    }
    if (madvise(page, size, MADV_WIPEONFORK) != 0) {
        munmap(page, size);
        return nullptr;
    }
    return new (page) std::atomic<std::uint64_t>;
}

// The first `size` bytes of them are not to be seen.
void wipe(std::span<const iovec> pieces, std::size_t size) {
    for (const iovec& piece : pieces) {
        const std::size_t here = std::min(size, piece.iov_len);
        std::memset(piece.iov_base, 0, here);
        size -= here;
    }
}

} // namespace

Image own_image() {
    static std::atomic<std::uint64_t>* const kept = make_word();
    if (!kept) {
        return {};
    }
    std::uint64_t word = kept->load(std::memory_order_relaxed);
    while (word == 0) { // the first time in this process
        std::uint64_t none = 0;
        const std::uint64_t one = engine::random_bits();
        word = kept->compare_exchange_strong(none, one) ? one : none;
    }
    return {getpid(), reinterpret_cast<std::uintptr_t>(kept), word};
}

Pulled pull(const Image& peer, std::span<const iovec> to, std::span<const iovec> from) {
    std::uint64_t word = 0;
    std::array<iovec, engine::kMaxPieces + 1> local;
    std::array<iovec, engine::kMaxPieces + 1> remote;
    local[0] = {&word, sizeof word};
    remote[0] = {reinterpret_cast<void*>(peer.address), sizeof word};
    std::copy(to.begin(), to.end(), local.begin() + 1);
    std::copy(from.begin(), from.end(), remote.begin() + 1);
    // One call looks the process up once, and copies from one memory. It copies all or
    // stops at the page that it cannot read or write: it is never called for more than it
    // can copy at once.
    const ssize_t n = process_vm_readv(peer.process, local.data(), to.size() + 1, remote.data(),
                                       from.size() + 1, 0);
    if (n < 0 && errno != EFAULT && errno != ESRCH) {
        return Pulled::not_permitted;
    }
    const std::size_t came =
        n < static_cast<ssize_t>(sizeof word) ? 0 : static_cast<std::size_t>(n) - sizeof word;
    if (word != peer.word) {
        wipe(to, came);
        return Pulled::gone;
    }
    if (came == total(to)) {
        return Pulled::all;
    }
    return writable(to) ? Pulled::not_theirs : Pulled::not_ours;
}

bool can_pull(const Image& peer) {
    return peer.process > 0 && peer.word != 0 && pull(peer, {}, {}) == Pulled::all;
}

bool same_process_namespace(pid_t process) {
    std::array<char, 40> path{};
    std::snprintf(path.data(), path.size(), "/proc/%d/ns/pid", static_cast<int>(process));
    struct stat theirs {};
    struct stat own {};
    return process > 0 && stat(path.data(), &theirs) == 0 && stat("/proc/self/ns/pid", &own) == 0 &&
           theirs.st_ino == own.st_ino && theirs.st_dev == own.st_dev;
}

} // namespace dat::shm
