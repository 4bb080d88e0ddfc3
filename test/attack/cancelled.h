// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A thread that is to be cancelled (pthread_cancel(3)).
#ifndef DAT_TEST_ATTACK_CANCELLED_H
#define DAT_TEST_ATTACK_CANCELLED_H

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <pthread.h>
#include <sched.h>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace dat::test {

class Cancelled {
  public:
    explicit Cancelled(std::function<void()> body) : body_(std::move(body)) {
        check(pthread_create(&thread_, nullptr, run, this) == 0, "no thread");
    }
    Cancelled(const Cancelled&) = delete;
    Cancelled& operator=(const Cancelled&) = delete;

    // Until the kernel says that it sleeps in poll(2) or ppoll(2).
    void await_sleep() const {
        for (const std::time_t end = std::time(nullptr) + kLimit; !is_polling(); sched_yield())
            check(std::time(nullptr) < end, "the call does not sleep");
    }
    void cancel() const { check(pthread_cancel(thread_) == 0, "pthread_cancel"); }
    // Whether it was cancelled, and did not return before.
    bool join() const {
        timespec end{};
        clock_gettime(CLOCK_REALTIME, &end);
        end.tv_sec += kLimit;
        void* result = nullptr;
        check(pthread_timedjoin_np(thread_, &result, &end) == 0, "a thread hangs");
        return result == PTHREAD_CANCELED;
    }

    static void check(bool right, const char* otherwise) {
        if (!right) {
            std::fprintf(stderr, "FAILED: %s\n", otherwise);
            std::_Exit(1);
        }
    }

  private:
    static constexpr int kLimit = 60; // seconds

    static void* run(void* self) {
        auto* const me = static_cast<Cancelled*>(self);
        me->tid_ = static_cast<int>(syscall(SYS_gettid));
        me->body_();
        return nullptr;
    }

    bool is_polling() const {
        const std::string path = "/proc/self/task/" + std::to_string(tid_.load()) + "/syscall";
        std::FILE* const file = std::fopen(path.c_str(), "re");
        long number = -1;
        const bool known = file && std::fscanf(file, "%ld", &number) == 1;
        if (file)
            std::fclose(file);
#ifdef SYS_poll
        return known && (number == SYS_poll || number == SYS_ppoll);
#else
        return known && number == SYS_ppoll;
#endif
    }

    std::function<void()> body_;
    std::atomic<int> tid_{0};
    pthread_t thread_{};
};

// Runs `body`, of calls that do not sleep, in a thread that has been asked to end before: none of
// them is a point of cancellation, and the thread ends behind them.
inline void run_with_cancellation_pending(const std::function<void()>& body) {
    bool done = false;
    Cancelled thread([&] {
        pthread_cancel(pthread_self());
        body();
        done = true;
        pthread_testcancel();
    });
    Cancelled::check(thread.join(), "the thread was not cancelled at last");
    Cancelled::check(done, "a call that does not sleep is a point of cancellation");
}

} // namespace dat::test

#endif
