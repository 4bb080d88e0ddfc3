// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// That the calls of data take no lock of the C library: this program stands before its mutexes
// and counts what its own thread takes while it posts and reads completions. It is none,
// although the progress thread exists, neither with FI_THREAD_DOMAIN nor with FI_THREAD_SAFE,
// whose biased lock is around a lock that is inlined (engine/lock.h). A read of an event queue
// takes one, which shows that the count counts. A plain program.
#include "plain.h"

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace {

thread_local unsigned long locks_taken = 0;

template <class Function> Function* real(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

} // namespace

// The dynamic linker finds these before those of the C library, for every library.
#pragma GCC visibility push(default)
extern "C" {

int pthread_mutex_lock(pthread_mutex_t* mutex) {
    static auto* const lock = real<int(pthread_mutex_t*)>("pthread_mutex_lock");
    ++locks_taken;
    return lock(mutex);
}

int pthread_mutex_trylock(pthread_mutex_t* mutex) {
    static auto* const lock = real<int(pthread_mutex_t*)>("pthread_mutex_trylock");
    ++locks_taken;
    return lock(mutex);
}

int pthread_spin_lock(pthread_spinlock_t* spin) {
    static auto* const lock = real<int(pthread_spinlock_t*)>("pthread_spin_lock");
    ++locks_taken;
    return lock(spin);
}

int pthread_rwlock_rdlock(pthread_rwlock_t* rwlock) {
    static auto* const lock = real<int(pthread_rwlock_t*)>("pthread_rwlock_rdlock");
    ++locks_taken;
    return lock(rwlock);
}

int pthread_rwlock_wrlock(pthread_rwlock_t* rwlock) {
    static auto* const lock = real<int(pthread_rwlock_t*)>("pthread_rwlock_wrlock");
    ++locks_taken;
    return lock(rwlock);
}

} // extern "C"
#pragma GCC visibility pop

namespace dat::test {

namespace {

bool progress_thread_exists() {
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::string name;
        std::getline(std::ifstream(task.path() / "comm"), name);
        if (name == "dat-progress")
            return true;
    }
    return false;
}

// Posts of every kind, and their completions, without the fixture's waits, which read
// event queues.
class Traffic {
  public:
    Traffic(const Transport& transport, fi_threading level)
        : pair_(Pair::connected(transport, options(level), options(level))),
          region_(pair_->far, 64, FI_REMOTE_READ | FI_REMOTE_WRITE) {}

    void go() {
        fid_ep* const ep = pair_->active.get();
        const Remote far = region_.at(0);
        iovec iov{data_, sizeof data_};
        const fi_msg msg{&iov, nullptr, 1, 0, &op_, 0};
        DAT_MUST(fi_recv(pair_->passive().get(), in_, sizeof in_, nullptr, 0, &op_));
        DAT_MUST(fi_recv(pair_->passive().get(), in_, sizeof in_, nullptr, 0, &op_));
        DAT_MUST(fi_recv(pair_->passive().get(), in_, sizeof in_, nullptr, 0, &op_));
        DAT_MUST(fi_send(ep, data_, sizeof data_, nullptr, 0, &op_));
        DAT_MUST(fi_inject(ep, data_, sizeof data_, 0));
        DAT_MUST(fi_sendmsg(ep, &msg, FI_COMPLETION | FI_TRANSMIT_COMPLETE));
        DAT_MUST(fi_write(ep, data_, sizeof data_, nullptr, 0, far.address, far.key, &op_));
        DAT_MUST(fi_inject_write(ep, data_, sizeof data_, 0, far.address, far.key));
        DAT_MUST(fi_read(ep, back_, sizeof back_, nullptr, 0, far.address, far.key, &op_));
        constexpr int kCompletions = 7;
        for (int done = 0; done < kCompletions;)
            done += read(pair_->near) + read(pair_->far);
    }
    // There are none.
    void read_events() {
        std::uint32_t event = 0;
        fi_eq_cm_entry entry;
        const ssize_t got = fi_eq_read(pair_->near.eq(), &event, &entry, sizeof entry, 0);
        DAT_REQUIRE(got == -FI_EAGAIN, error_name(got));
    }

  private:
    static SideOptions options(fi_threading level) {
        SideOptions options;
        options.progress = FI_PROGRESS_AUTO;
        options.threading = level;
        return options;
    }

    static int read(Side& side) {
        fi_cq_data_entry room[4];
        const ssize_t got = fi_cq_read(side.cq(), room, 4);
        DAT_REQUIRE(got > 0 || got == -FI_EAGAIN, error_name(got));
        return got > 0 ? static_cast<int>(got) : 0;
    }

    std::unique_ptr<Pair> pair_;
    Region region_;
    std::byte data_[32]{};
    std::byte in_[32]{};
    std::byte back_[32]{};
    Op op_;
};

// The fewest and, of all rounds, the middle number of locks that a round took.
struct Count {
    unsigned long least;
    unsigned long middle;
};

// What a round does besides posting and reading completions.
enum Besides : bool { kNothingElse, kEventQueue };

Count count(const Transport& transport, fi_threading level, Besides besides) {
    constexpr std::size_t kRounds = 501;
    Traffic traffic(transport, level);
    DAT_REQUIRE(wait_until(progress_thread_exists), "no progress thread");
    std::vector<unsigned long> taken(kRounds);
    for (unsigned long& round : taken) {
        const unsigned long before = locks_taken;
        traffic.go();
        if (besides == kEventQueue) {
            traffic.read_events();
        }
        round = locks_taken - before;
    }
    std::sort(taken.begin(), taken.end());
    const Count result{taken.front(), taken[kRounds / 2]};
    std::printf("%s, %s%s: %lu locks in a round of 9 posts; at least %lu, at most %lu\n",
                transport.name, level == FI_THREAD_SAFE ? "FI_THREAD_SAFE" : "FI_THREAD_DOMAIN",
                besides == kEventQueue ? ", events read" : "", result.middle, result.least,
                taken.back());
    return result;
}

void run(const Transport& transport) {
    // The exceptions are rounds in which the scheduler kept this thread away for so long
    // that the progress thread came to look after the domain: it is let out by a lock.
    for (const fi_threading level : {FI_THREAD_DOMAIN, FI_THREAD_SAFE}) {
        const Count taken = count(transport, level, kNothingElse);
        DAT_REQUIRE(taken.middle == 0, "posts and completions take locks");
    }
    const Count some = count(transport, FI_THREAD_DOMAIN, kEventQueue);
    DAT_REQUIRE(some.least >= 1, "locks are not counted");
}

} // namespace
} // namespace dat::test

int main() { return dat::test::run_over_all(dat::test::run); }
