// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See random.h.
#include "engine/random.h"

#include "engine/kernel.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <random>
#include <sys/mman.h>
#include <sys/random.h>
#include <utility>

namespace dat::engine {
namespace {

using Mark = std::atomic<std::uint64_t>;

// What names this process among those that were forked one from another; 0: it has no name yet, and
// none again after a fork. nullptr: the kernel cannot forget it so.
Mark* mark() {
    static Mark* const made = [] {
        const std::size_t size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        void* const page =
            mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED) {
            return static_cast<Mark*>(nullptr);
        }
        if (madvise(page, size, MADV_WIPEONFORK) != 0) {
            munmap(page, size);
            return static_cast<Mark*>(nullptr);
        }
        return new (page) Mark(0);
    }();
    return made;
}

void draw(void* to, std::size_t size) {
    const kernel::NoCancel within;
    if (getrandom(to, size, 0) != static_cast<ssize_t>(size)) {
        std::random_device device; // a kernel without getrandom(2)
        auto* const bytes = static_cast<unsigned char*>(to);
        for (std::size_t i = 0; i < size; ++i) {
            bytes[i] = static_cast<unsigned char>(device());
        }
    }
}

// What a thread has drawn ahead. Each number is given out once, and by one process.
struct Ahead {
    std::array<std::uint64_t, 32> numbers;
    std::size_t left = 0;
    std::uint64_t process = 0; // the mark as they were drawn
};
thread_local Ahead g_ahead;

} // namespace

std::uint64_t random_bits() {
    Mark* const now = mark();
    std::uint64_t bits = 0;
    if (!now) {
        draw(&bits, sizeof bits);
        return bits;
    }
    std::uint64_t process = now->load(std::memory_order_relaxed);
    if (process == 0) {
        draw(&process, sizeof process);
        now->store(process |= 1, std::memory_order_relaxed);
    }
    if (g_ahead.left == 0 || g_ahead.process != process) {
        draw(g_ahead.numbers.data(), sizeof g_ahead.numbers);
        g_ahead.left = g_ahead.numbers.size();
        g_ahead.process = process;
    }
    return std::exchange(g_ahead.numbers[--g_ahead.left], 0);
}

} // namespace dat::engine
