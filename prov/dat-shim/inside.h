// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Which threads are inside a call of the library. Who ends an IA hides its handles, waits until
// all that were inside have left or come again, and destroys only then: a thread that found an
// object before may use it as long as its call lasts. What a call pays is a word of its own thread,
// read and written plainly; the barrier is paid by who waits (engine/barrier.h).
#ifndef DAT_SHIM_INSIDE_H
#define DAT_SHIM_INSIDE_H

#include <atomic>
#include <cstdint>

namespace dat::shim {

// A thread that has called, in its own storage. Known to await_others() until it ends.
class Visitor {
  public:
    // Throws std::bad_alloc, at the first call of a thread.
    void enter() {
        const std::uint64_t now = visit_.load(std::memory_order_relaxed);
        if ((now & kAsks) != 0) [[unlikely]] {
            return enter_slowly();
        }
        visit_.store(now | kInside, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    // Right also where a signal handler has been inside, and left, meanwhile.
    void leave() {
        const std::uint64_t now = visit_.load(std::memory_order_relaxed);
        visit_.store((now | kInside) + kInside, std::memory_order_release);
    }
    bool is_inside() const { return (visit_.load(std::memory_order_relaxed) & kInside) != 0; }

  private:
    friend struct Visitors;
    static constexpr std::uint64_t kAsks = 1;    // is not known yet, or has to fence for itself
    static constexpr std::uint64_t kInside = 2;  // what is above counts the calls
    static constexpr std::uint64_t kOutside = 4; // of one that is known, at first

    void enter_slowly();

    std::atomic<std::uint64_t> visit_{kAsks};
    // Guarded by the mutex of the list.
    Visitor* next_ = nullptr;
    Visitor* before_ = nullptr;
    std::uint64_t seen_ = 0; // inside, as who waits has found it; 0: outside
};

// The calling thread.
[[gnu::visibility("hidden"),
  gnu::tls_model("initial-exec")]] extern constinit thread_local Visitor t_visitor;

// As long as it lives the thread is inside. Not within another.
class Inside {
  public:
    Inside() { t_visitor.enter(); } // throws std::bad_alloc
    ~Inside() { t_visitor.leave(); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
};

// Within Inside: as long as it lives the thread sleeps, or calls the program, and nobody waits for
// it. What it uses afterwards has to be kept by other means.
class Outside {
  public:
    Outside() : was_inside_(t_visitor.is_inside()) {
        if (was_inside_) {
            t_visitor.leave();
        }
    }
    ~Outside() {
        if (was_inside_) {
            t_visitor.enter();
        }
    }
    Outside(const Outside&) = delete;
    Outside& operator=(const Outside&) = delete;

  private:
    const bool was_inside_;
};

// Returns when each other thread that is inside now has left, or is outside for a while. What
// was stored before is seen by all that enter later. Itself the thread is outside meanwhile, so
// that several may wait for each other. Blocks as long as calls of other threads last.
void await_others();

} // namespace dat::shim

#endif
