// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See poller.h.
#include "engine/poller.h"

#include "engine/proc.h"

#include <array>
#include <cstddef>
#include <cstdio>
#include <string_view>
#include <time.h>
#include <unistd.h>

namespace dat::engine {
namespace {

constexpr pid_t kOwn = -1;
// A child of fork(2) has its parent's number here: nothing is found out of that.
[[gnu::tls_model("initial-exec")]] constinit thread_local pid_t t_number = 0;

// The state of a thread of this process, as in ps(1); 0: not known.
char state_of(pid_t thread) noexcept {
    std::array<char, 64> path;
    std::snprintf(path.data(), path.size(), "/proc/self/task/%d/stat", static_cast<int>(thread));
    std::array<char, 256> line;
    const std::string_view text = text_of(path.data(), line);
    const std::size_t name_end = text.rfind(')'); // the name may have one, what follows has none
    return name_end != text.npos && name_end + 2 < text.size() ? text[name_end + 2] : '\0';
}

} // namespace

void Poller::note() noexcept {
    if (t_number == 0) [[unlikely]] {
        t_number = gettid();
    }
    if (t_number != kOwn && thread_.load(std::memory_order_relaxed) != t_number) [[unlikely]] {
        thread_.store(t_number, std::memory_order_relaxed);
    }
}

void Poller::is_own_thread() noexcept { t_number = kOwn; }

Poller::Nanoseconds Poller::time() const noexcept {
    const pid_t thread = thread_.load(std::memory_order_relaxed);
    // pthread_getcpuclockid(3) makes the same number, of a pthread_t that has to live.
    const auto clock = static_cast<clockid_t>((~static_cast<unsigned>(thread) << 3) | 6);
    timespec had{};
    if (thread == 0 || clock_gettime(clock, &had) != 0) {
        return kNone;
    }
    return std::chrono::seconds(had.tv_sec) + Nanoseconds(had.tv_nsec);
}

bool Poller::waits_for_processor() const noexcept {
    constexpr Nanoseconds kHardly{1500};
    const Nanoseconds now = time();
    return now != kNone && time_seen_ != kNone && now - time_seen_ < kHardly &&
           state_of(thread_.load(std::memory_order_relaxed)) == 'R';
}

} // namespace dat::engine
