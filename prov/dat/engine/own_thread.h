// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A thread that lives in somebody else's process: no signal is for it.
#ifndef DAT_ENGINE_OWN_THREAD_H
#define DAT_ENGINE_OWN_THREAD_H

#include <cerrno>
#include <csignal>
#include <new>
#include <pthread.h>
#include <system_error>
#include <thread>
#include <utility>

namespace dat::engine {

// 0 or -errno.
template <class Run> int start_thread(std::thread& thread, Run&& run) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = 0;
    try {
        thread = std::thread(std::forward<Run>(run));
    } catch (const std::bad_alloc&) {
        error = -ENOMEM;
    } catch (const std::system_error& failure) {
        error = -failure.code().value();
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return error;
}

} // namespace dat::engine

#endif
