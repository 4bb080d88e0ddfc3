// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See reaper.h.
#include "links/shm/reaper.h"

#include "engine/own_thread.h"

#include <array>
#include <mutex>
#include <pthread.h>
#include <thread>
#include <utility>

namespace dat::shm {

// Shared with the thread, which may outlive whoever began it. Sockets that are closed
// need no order.
struct Reaper::Work {
    static constexpr std::size_t kFull = 64;
    static constexpr std::size_t kRoom = 4 * kFull; // guests that leave come on top

    bool put(net::Socket& socket) {
        const std::lock_guard lock(mutex);
        if (count == kRoom) {
            return false;
        }
        waiting[count++] = std::move(socket);
        return true;
    }
    // None: the thread has ended with this.
    net::Socket next() {
        const std::lock_guard lock(mutex);
        if (count == 0) {
            running = false;
            return {};
        }
        return std::move(waiting[--count]);
    }
    bool begins() {
        const std::lock_guard lock(mutex);
        return !std::exchange(running, true);
    }

    mutable std::mutex mutex; // all of it
    std::array<net::Socket, kRoom> waiting;
    std::size_t count = 0;
    bool running = false;
};

Reaper::Reaper() : work_(std::make_shared<Work>()) {}

Reaper::~Reaper() = default;

void Reaper::take(net::Socket socket) {
    if (!socket || !work_->put(socket) || !work_->begins()) {
        return;
    }
    const auto close_all = [](Work& work) {
        while (net::Socket each = work.next()) {
            each.close();
        }
    };
    std::thread thread;
    const int error = engine::start_thread(thread, [work = work_, close_all] {
        pthread_setname_np(pthread_self(), "dat-reaper");
        close_all(*work);
    });
    if (error == 0) {
        thread.detach();
    } else {
        close_all(*work_);
    }
}

bool Reaper::full() const {
    const std::lock_guard lock(work_->mutex);
    return work_->count >= Work::kFull;
}

} // namespace dat::shm
