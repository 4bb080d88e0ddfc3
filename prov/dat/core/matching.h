// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Which receive a message goes into at an endpoint with many peers: posted receives,
// messages that came unexpected, and MPI's order between them. An endpoint has one Matching
// for its tagged messages and one for the others, whose tag is always 0 and whose receives
// ignore nothing. Under the domain's gate. May include: base.
//
// A receive of (tag, ignore, source) takes a message of (t, s) if tag and t agree in all bits
// outside `ignore`, and its source is s or kAnySource. What is promised:
//
// - arrive() finds the receive that was posted first of all that take the message.
// - post() finds the message that came first of all that the receive takes.
// - So messages of one source are received in the order in which they came, wherever the
//   same receives could take them.
//
// How it is kept, and at what cost. Receives that ignore the same bits, and name a source or
// not, are of one pattern. For one pattern, "takes" is equality: of the bits that count, and
// of the source if one is named. So each receive lies in a hash table under (pattern, bits
// that count, source), behind those that were posted before it under the same key. A message
// is looked up once for each pattern of which a receive is posted, which finds the first
// receive of each pattern that takes it; the least sequence number of these was posted
// first of all. An arrival costs the same whatever number of other receives is posted: one
// look-up where all name tag and source, and one more for each further pattern, eight at
// most. MPI has four: source and tag, each given or not. Receives of a ninth pattern and
// more are a list, which is gone through from the oldest on, to the first that takes the
// message.
//
// A message lies in a hash table under (tag, source), behind those that came before it with
// the same, and in the order of arrival. A receive that names both looks it up, at the same
// cost whatever else there is. Any other receive looks at the oldest kGlance messages. Where
// none is for it, its pattern gets an index of its own, of all messages by that pattern's
// key: it is made once, and goes on with what has come since whenever the pattern is looked
// for, so that a message costs a pattern one insertion at most, however often it is
// looked for. kIndexes patterns have one at a time, and what another one needs takes the
// place of that which was not needed for longest. Where there is no memory for an index the
// receive goes through all messages from the oldest on, which finds the same.
//
// Only post() and peek() allocate: larger tables, and indexes; they do without if there is no
// memory. The tables are hashed by multiplication with secret numbers, so that a peer that
// chooses tags cannot choose those that collide.
#ifndef DAT_CORE_MATCHING_H
#define DAT_CORE_MATCHING_H

#include "base/assert.h"
#include "base/list.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace dat::core {

// A number that the owner gives each peer; a peer that has restarted may keep it.
using RdmSource = std::uint32_t;
inline constexpr RdmSource kAnySource = ~RdmSource{0};

// What lies in a chain of a hash table; what is in the order of arrival.
struct InBucket {};
struct InOrder {};

// A receive. Its owner keeps it where it is while it is posted, and has it cancelled before
// it ends. Bytes: 56.
class PostedReceive : public base::Hook<InBucket> {
  public:
    // What it is for; not while it is posted. `stays`: it is a buffer for many messages, and
    // remains posted when one goes into it, until it is cancelled.
    void want(std::uint64_t tag, std::uint64_t ignore, RdmSource source, bool stays = false) {
        tag_ = tag & ~ignore;
        counts_ = ~ignore;
        source_ = source;
        stays_ = stays;
    }
    std::uint64_t tag() const { return tag_; } // without the ignored bits
    std::uint64_t ignore() const { return ~counts_; }
    RdmSource source() const { return source_; }
    bool stays() const { return stays_; }
    bool takes(std::uint64_t tag, RdmSource source) const {
        return (tag & counts_) == tag_ && (source_ == source || source_ == kAnySource);
    }

  private:
    friend class Matching;
    std::uint64_t tag_ = 0;
    std::uint64_t counts_ = ~std::uint64_t{0};
    std::uint64_t seq_ = 0;
    RdmSource source_ = kAnySource;
    std::uint8_t pattern_ = 0;
    bool stays_ = false;
    bool posted_ = false;
};

// A message without a receive. Its owner keeps it where it is until it is taken. Bytes: 48.
class UnexpectedMessage : public base::Hook<InBucket>, public base::Hook<InOrder> {
  public:
    // Not while it is held.
    void from(std::uint64_t tag, RdmSource source) {
        tag_ = tag;
        source_ = source;
    }
    std::uint64_t tag() const { return tag_; }
    RdmSource source() const { return source_; }

  private:
    friend class Matching;
    friend class MessageIndexes;
    std::uint64_t tag_ = 0;
    RdmSource source_ = 0;
    std::uint32_t entry_ = ~0u; // of the indexes; ~0: in none
};

// Where keys lie in a table of 2^n buckets.
class MatchHash {
  public:
    explicit MatchHash(std::uint64_t secret);
    // `bits`: n, 1 to 32.
    std::size_t bucket(std::uint64_t tag, RdmSource source, std::uint32_t pattern,
                       unsigned bits) const {
        const std::uint64_t rest = (std::uint64_t{pattern} << 32) | source;
        return static_cast<std::size_t>((tag * by_tag_ + rest * by_rest_) >> (64 - bits));
    }

  private:
    std::uint64_t by_tag_;
    std::uint64_t by_rest_;
};

// Chains that grow in number, not in length.
template <class T> class MatchTable {
  public:
    using Bucket = base::List<T, InBucket>;
    static constexpr unsigned kFirstBits = 6;
    static constexpr std::size_t kLoad = 2; // members a bucket, on average at most

    MatchTable() : buckets_(new Bucket[std::size_t{1} << kFirstBits]) {}

    unsigned bits() const { return bits_; }
    Bucket& at(std::size_t bucket) { return buckets_[bucket]; }
    bool crowded(std::size_t members) const { return members > kLoad << bits_; }
    // Buckets for that many. `where(member, bits)`: the bucket that a member belongs into. It
    // stays as it is if there is no memory.
    template <class Where> void grow(std::size_t members, Where&& where);
    template <class Call> void each_bucket(Call&& call) {
        for (std::size_t i = 0; i < std::size_t{1} << bits_; ++i) {
            call(buckets_[i]);
        }
    }

  private:
    std::unique_ptr<Bucket[]> buckets_;
    unsigned bits_ = kFirstBits;
};

class MessageIndexes;

class Matching {
  public:
    static constexpr unsigned kPatterns = 8;    // of receives that are posted at once, hashed
    static constexpr unsigned kIndexes = 4;     // of messages, by pattern
    static constexpr std::uint32_t kGlance = 8; // messages looked at before an index is used

    // `secret`: what a peer cannot guess. May run out of memory.
    explicit Matching(std::uint64_t secret);
    ~Matching(); // nothing is posted or held
    Matching(const Matching&) = delete;
    Matching& operator=(const Matching&) = delete;

    // --- a receive comes ---

    // The message that it takes, which is held no longer; nullptr: there was none, and it is
    // posted. For a buffer that stays this is called again while there is room in it and a
    // message was returned.
    UnexpectedMessage* post(PostedReceive& receive) {
        DAT_ASSERT(!receive.posted_);
        if (held_ != 0) {
            if (UnexpectedMessage* const found =
                    find(receive.tag_, receive.counts_, receive.source_)) {
                take(*found);
                return found;
            }
        }
        enlist(receive);
        return nullptr;
    }
    // The message that such a receive would take, which stays (FI_PEEK).
    UnexpectedMessage* peek(std::uint64_t tag, std::uint64_t ignore, RdmSource source) {
        return held_ == 0 ? nullptr : find(tag & ~ignore, ~ignore, source);
    }
    // A message that is held is no longer: it was peeked at and is claimed, or is discarded.
    void take(UnexpectedMessage& message) {
        DAT_ASSERT(kept(message));
        base::List<UnexpectedMessage, InBucket>::remove(message);
        base::List<UnexpectedMessage, InOrder>::remove(message);
        --held_;
        if (message.entry_ != ~0u) [[unlikely]] {
            drop_entry(message);
        }
    }
    // The receive is posted no longer. False: it was not.
    bool cancel(PostedReceive& receive) {
        if (!receive.posted_) {
            return false;
        }
        retire(receive);
        return true;
    }
    static bool posted(const PostedReceive& receive) { return receive.posted_; }
    static bool kept(const UnexpectedMessage& message) {
        return base::List<UnexpectedMessage, InOrder>::holds(message);
    }

    // --- a message comes ---

    // The receive that it goes into, which is posted no longer unless it stays; nullptr: none
    // takes it, so that it is to be held.
    PostedReceive* arrive(std::uint64_t tag, RdmSource source) {
        if (posted_ == 0) {
            return nullptr;
        }
        PostedReceive* first = nullptr;
        for (std::uint32_t left = hashed_; left != 0; left &= left - 1) {
            const auto pattern = static_cast<unsigned>(std::countr_zero(left));
            const std::uint64_t bits = tag & patterns_[pattern].counts;
            const RdmSource from = source | patterns_[pattern].any;
            PostedReceive* const found =
                receives_.at(hash_.bucket(bits, from, pattern, receives_.bits()))
                    .find([=](const PostedReceive& r) {
                        return r.tag_ == bits && r.source_ == from && r.pattern_ == pattern;
                    });
            if (found && (!first || found->seq_ < first->seq_)) {
                first = found;
            }
        }
        if (!others_.empty()) [[unlikely]] {
            first = among_others(tag, source, first);
        }
        if (first && !first->stays_) {
            retire(*first);
        }
        return first;
    }
    // It came last of all, and arrive() found nothing for it. Never fails.
    void keep(UnexpectedMessage& message) {
        DAT_ASSERT(!kept(message));
        messages_.at(hash_.bucket(message.tag_, message.source_, 0, messages_.bits()))
            .push(message);
        recent_.push(message);
        ++held_;
    }

    // --- all of them; the cost is that of going through all ---

    std::size_t posted() const { return posted_; }
    std::size_t held() const { return held_; }
    // Takes out each receive for which `test` holds and calls `call` with it, in no order.
    // Neither calls anything here.
    template <class Test, class Call> void cancel_each(Test&& test, Call&& call) {
        const auto sweep = [&](base::List<PostedReceive, InBucket>& list) {
            while (PostedReceive* const found = list.find(test)) {
                retire(*found);
                call(*found);
            }
        };
        receives_.each_bucket(sweep);
        sweep(others_);
    }
    // The receives that name `source` and no other (FI_SOURCE_ERR).
    template <class Call> void source_died(RdmSource source, Call&& call) {
        cancel_each([=](const PostedReceive& r) { return r.source_ == source; }, call);
    }
    // One receive for which `test` holds, which stays posted; nullptr: there is none.
    template <class Test> PostedReceive* find_posted(Test&& test) {
        PostedReceive* found = others_.find(test);
        receives_.each_bucket([&](base::List<PostedReceive, InBucket>& list) {
            found = found ? found : list.find(test);
        });
        return found;
    }
    // Takes out each message for which `test` holds and calls `call` with it, in the order in
    // which they came. Neither calls anything here.
    template <class Test, class Call> void take_each(Test&& test, Call&& call) {
        for (auto* const list : {&indexed_, &recent_}) {
            while (UnexpectedMessage* const found = list->find(test)) {
                take(*found);
                call(*found);
            }
        }
    }

  private:
    struct Pattern {
        std::uint64_t counts = ~std::uint64_t{0}; // the bits of a tag that count
        RdmSource any = 0;                        // ~0: of any source
        std::uint32_t posted = 0;
    };

    void enlist(PostedReceive& receive) {
        const bool plain = receive.counts_ == ~std::uint64_t{0} && receive.source_ != kAnySource;
        const unsigned pattern = plain ? 0 : pattern_of(receive);
        receive.pattern_ = static_cast<std::uint8_t>(pattern);
        receive.seq_ = next_seq_++;
        receive.posted_ = true;
        ++posted_;
        if (pattern == kPatterns) [[unlikely]] {
            others_.push(receive);
            return;
        }
        if (receives_.crowded(posted_)) [[unlikely]] {
            grow_receives();
        }
        ++patterns_[pattern].posted;
        hashed_ |= 1u << pattern;
        receives_.at(where(receive, receives_.bits())).push(receive);
    }
    void retire(PostedReceive& receive) {
        base::List<PostedReceive, InBucket>::remove(receive);
        receive.posted_ = false;
        --posted_;
        const unsigned pattern = receive.pattern_;
        if (pattern != kPatterns && --patterns_[pattern].posted == 0) {
            hashed_ &= ~(1u << pattern);
        }
    }
    std::size_t where(const PostedReceive& r, unsigned bits) const {
        return hash_.bucket(r.tag_, r.source_, r.pattern_, bits);
    }
    // The first message of (tag, source) among the bits that count.
    UnexpectedMessage* find(std::uint64_t tag, std::uint64_t counts, RdmSource source) {
        if (messages_.crowded(held_)) [[unlikely]] {
            grow_messages();
        }
        if (counts != ~std::uint64_t{0} || source == kAnySource) {
            return find_by_pattern(tag, counts, source);
        }
        return messages_.at(hash_.bucket(tag, source, 0, messages_.bits()))
            .find([=](const UnexpectedMessage& m) { return m.tag_ == tag && m.source_ == source; });
    }

    // matching.cpp
    unsigned pattern_of(const PostedReceive& receive);
    PostedReceive* among_others(std::uint64_t tag, RdmSource source, PostedReceive* first);
    UnexpectedMessage* find_by_pattern(std::uint64_t tag, std::uint64_t counts, RdmSource source);
    void drop_entry(UnexpectedMessage& message);
    void grow_receives();
    void grow_messages();

    const MatchHash hash_;
    std::size_t posted_ = 0;
    std::size_t held_ = 0;
    std::uint64_t next_seq_ = 0;
    std::uint32_t hashed_ = 0; // the patterns of which a receive is posted
    std::array<Pattern, kPatterns> patterns_;
    MatchTable<PostedReceive> receives_;
    base::List<PostedReceive, InBucket> others_; // of more patterns, oldest first
    MatchTable<UnexpectedMessage> messages_;
    // All messages in the order in which they came: those in the indexes, then the others.
    base::List<UnexpectedMessage, InOrder> indexed_;
    base::List<UnexpectedMessage, InOrder> recent_;
    std::unique_ptr<MessageIndexes> indexes_; // made when first needed
};

} // namespace dat::core

#endif
