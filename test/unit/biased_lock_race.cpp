// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The lock lets one party in at a time: callers of the application and outsiders
// change plain variables under it, at random moments. A plain program, for
// ThreadSanitizer, which finds what this program's own sums do not.
#include "engine/biased_lock.h"

#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

constexpr int kCalls = 20000;
constexpr int kVisits = 500;

struct Shared {
    long sum = 0;
    bool taken = false; // somebody is inside
    bool met = false;   // two were
    void visit() {
        met = met || taken;
        taken = true;
        ++sum;
        taken = false;
    }
};

// `callers` threads of the application and two outsiders.
bool race(bool shared_lock_of_domain, int callers) {
    dat::engine::BiasedLock biased_lock(shared_lock_of_domain);
    Shared shared;
    std::vector<std::thread> threads;
    for (int i = 0; i < callers; ++i) {
        threads.emplace_back([&] {
            for (int n = 0; n < kCalls; ++n) {
                const dat::engine::BiasedLockOwner inside(biased_lock);
                shared.visit();
            }
        });
    }
    for (int i = 0; i < 2; ++i) {
        threads.emplace_back([&] {
            for (int n = 0; n < kVisits; ++n) {
                const dat::engine::BiasedLockVisitor inside(biased_lock);
                shared.visit();
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    const long expected = long{callers} * kCalls + 2 * kVisits;
    const bool good = !shared.met && shared.sum == expected;
    std::printf("%s: biased_lock with %d caller(s), %s: %ld of %ld visits%s\n",
                good ? "ok" : "FAILED", callers,
                shared_lock_of_domain ? "FI_THREAD_SAFE" : "FI_THREAD_DOMAIN", shared.sum, expected,
                shared.met ? ", two at once" : "");
    return good;
}

} // namespace

int main() {
    bool good = true;
    for (int round = 0; round < 5; ++round) {
        good = race(false, 1) && good;
        good = race(true, 1) && good;
        good = race(true, 3) && good;
    }
    return good ? 0 : 1;
}
