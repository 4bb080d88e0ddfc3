// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See inside.h.
#include "dat-shim/inside.h"

#include "engine/barrier.h"

#include <mutex>
#include <new>
#include <pthread.h>
#include <sched.h>

namespace dat::shim {

constinit thread_local Visitor t_visitor;

// All that are known.
struct Visitors {
    static constinit std::mutex mutex;   // guards all but `waiting`
    static constinit std::mutex waiting; // held by the one that waits; before `mutex`
    static Visitor* first;
    static pthread_key_t key; // whose destructor tells of a thread's end
    static bool has_key;

    static void prepare();
    static void add(Visitor& visitor);
    static void remove(void* visitor);
    static void begin_child();
    static void note();
    static bool all_have_left();
};

constinit std::mutex Visitors::mutex;
constinit std::mutex Visitors::waiting;
Visitor* Visitors::first = nullptr;
pthread_key_t Visitors::key;
bool Visitors::has_key = false;

// Under the mutex. Throws std::bad_alloc.
void Visitors::prepare() {
    if (has_key) {
        return;
    }
    if (pthread_key_create(&key, remove) != 0) {
        throw std::bad_alloc();
    }
    if (pthread_atfork(nullptr, nullptr, begin_child) != 0) {
        pthread_key_delete(key);
        throw std::bad_alloc();
    }
    has_key = true;
}

void Visitors::add(Visitor& visitor) {
    const std::lock_guard lock(mutex);
    prepare();
    if (pthread_setspecific(key, &visitor) != 0) {
        throw std::bad_alloc();
    }
    visitor.before_ = nullptr;
    visitor.next_ = first;
    visitor.seen_ = 0;
    if (first) {
        first->before_ = &visitor;
    }
    first = &visitor;
    visitor.visit_.store(Visitor::kOutside | (engine::barriers_reach() ? 0 : Visitor::kAsks),
                         std::memory_order_relaxed);
}

void Visitors::remove(void* at) {
    const std::lock_guard lock(mutex);
    auto& visitor = *static_cast<Visitor*>(at);
    (visitor.before_ ? visitor.before_->next_ : first) = visitor.next_;
    if (visitor.next_) {
        visitor.next_->before_ = visitor.before_;
    }
    visitor.visit_.store(Visitor::kAsks, std::memory_order_release);
}

// A child of fork(2) has the one thread.
void Visitors::begin_child() {
    new (&mutex) std::mutex;
    new (&waiting) std::mutex;
    Visitor& here = t_visitor;
    const bool known = here.visit_.load(std::memory_order_relaxed) != Visitor::kAsks;
    first = known ? &here : nullptr;
    here.next_ = here.before_ = nullptr;
}

void Visitors::note() {
    const std::lock_guard lock(mutex);
    for (Visitor* each = first; each; each = each->next_) {
        const std::uint64_t now = each->visit_.load(std::memory_order_acquire);
        each->seen_ = (now & Visitor::kInside) != 0 ? now : 0;
    }
}

bool Visitors::all_have_left() {
    const std::lock_guard lock(mutex);
    for (Visitor* each = first; each; each = each->next_) {
        if (each->seen_ != 0 && each->visit_.load(std::memory_order_acquire) == each->seen_) {
            return false;
        }
    }
    return true;
}

void Visitor::enter_slowly() {
    if (visit_.load(std::memory_order_relaxed) == kAsks) {
        Visitors::add(*this);
    }
    visit_.store(visit_.load(std::memory_order_relaxed) | kInside, std::memory_order_relaxed);
    engine::full_fence();
}

void await_others() {
    const Outside meanwhile;
    const std::lock_guard alone(Visitors::waiting);
    engine::heavy_barrier();
    Visitors::note();
    while (!Visitors::all_have_left()) {
        sched_yield();
    }
}

} // namespace dat::shim
