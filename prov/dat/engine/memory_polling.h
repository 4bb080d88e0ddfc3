// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Which links in memory are looked at in each round of a domain, and which are told of by a
// Notifier; how long one is looked at in vain before it may sleep; and who is to be rung for once
// more, since its program may have stopped looking. Serialized by the domain's lock.
#ifndef DAT_ENGINE_MEMORY_POLLING_H
#define DAT_ENGINE_MEMORY_POLLING_H

#include "engine/link.h"
#include "engine/reactor.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace dat::engine {

class MemoryPolling {
  public:
    // Rounds of the domain, after which the kernel is asked for what else there is.
    static constexpr std::uint32_t kReactorPeriod = 32;

    // For links in memory, from the constructor to the destructor: so that wake() needs no memory.
    // expect_link() throws std::bad_alloc.
    void expect_link();
    void forget(const MemoryLink& link) {
        --link_count_;
        if (untold_ == &link) {
            untold_ = nullptr;
        }
    }
    // The same for a Notifier.
    void expect_notifier(Notifier& notifier);
    void forget(Notifier& notifier) {
        stop(notifier);
        std::erase(all_notifiers_, &notifier);
    }

    // Polled in each round from here on. Of Domain::wake() alone.
    void wake(MemoryLink& link);
    void wake(Notifier& notifier) { notifiers_.push_back(&notifier); }
    // Not any more, if nothing stirs. After so many polls in vain (patience()), which are fewer the
    // more of them there are; where they are many, those with a Notifier are left to that soon.
    void let_sleep(MemoryLink& link);
    void stop(Notifier& notifier) { std::erase(notifiers_, &notifier); }
    // It has ended.
    void retire(const Link& link);
    // The link has sent something, and its peer was awake. The last such link may have to
    // remind_peer(), if the domain goes on being polled, or goes to sleep.
    void told_nobody(MemoryLink& link) {
        untold_ = &link;
        untold_is_new_ = true;
    }

    std::uint32_t patience() const { return patience_; }
    // The same, where a link that sleeps saves its peer nothing.
    std::uint32_t share_of_polls() const { return share_of_polls_; }
    // So few are awake that one more costs no more than to be told of what it has.
    bool polls_few() const { return awake_.size() < kFewAwake; }
    // There may be some that were struck out.
    bool none() const { return awake_.empty(); }
    bool no_notifier() const { return notifiers_.empty(); }
    // The thread that polls is on that processor, as sched_getcpu(3) says; -1: nobody polls.
    void is_on_processor(int processor);
    // So is one that polls at the other end, as far as it has said. Looks at some of them, in turn.
    bool shares_processor();
    // None of those that are awake had anything, for so many polls.
    bool is_idle(std::uint32_t polls) const {
        return std::all_of(awake_.begin(), awake_.end(), [=](const MemoryLink* link) {
            return !link || link->idle_polls() >= polls;
        });
    }

    void poll() {
        for (std::size_t i = 0; i < awake_.size(); ++i) {
            if (awake_[i]) {
                awake_[i]->poll();
            }
        }
    }
    void poll_notifiers() {
        if (!notifiers_.empty()) {
            poll_some_notifiers();
        }
    }
    // Those that were struck out are gone. Not within poll().
    void compact() {
        if (any_struck_) [[unlikely]] {
            any_struck_ = false;
            std::erase(awake_, nullptr);
        }
    }
    // Now and then beside poll(), so that patience() follows how often the program looks.
    void looked(Clock::time_point now);
    // The thread had given its processor away until now.
    void resumed(Clock::time_point now) { looked_ = now; }
    bool tells_nobody() const { return untold_ != nullptr; }
    // The last link that told_nobody() reminds its peer, if that has taken nothing for long.
    // Precondition: tells_nobody().
    void remind_later(Clock::time_point now);
    // The domain sleeps: what is awake has to be woken from now on, and the peer of that last link
    // is reminded. False: something is there. The notifiers come first.
    void remind() {
        if (untold_) {
            remind_peer();
        }
    }
    bool rest_notifiers();
    bool rest();

  private:
    static constexpr std::uint32_t kPatience = 1 << 20;
    static constexpr std::size_t kFewAwake = 8;
    static constexpr std::size_t kNotifiersARound = 4;

    void poll_some_notifiers();
    void remind_peer();

    // nullptr: struck out, while being walked over. There is room for each that exists.
    std::vector<MemoryLink*> awake_;
    std::size_t link_count_ = 0;
    std::vector<Notifier*> notifiers_; // that are awake; there is room for each that exists
    std::vector<Notifier*> all_notifiers_;
    std::size_t next_notifier_ = 0;  // behind the one that is polled next, in turn
    std::size_t next_processor_ = 0; // in all_notifiers_: whose is looked at next, in turn
    std::uint32_t patience_ = kPatience;
    std::uint32_t share_of_polls_ = kPatience;
    bool any_struck_ = false;      // awake_ has a nullptr
    bool untold_is_new_ = false;   // and was so since remind_later()
    bool looked_late_ = false;     // looked() was called late
    std::uint32_t processor_ = 0;  // 1 + its number; 0: not known
    Clock::time_point looked_{};   // looked() was called
    MemoryLink* untold_ = nullptr; // told_nobody()
    std::uint64_t taken_then_ = 0; // of it by the peer, as remind_later() has looked
    Clock::time_point remind_at_{};
};

} // namespace dat::engine

#endif
