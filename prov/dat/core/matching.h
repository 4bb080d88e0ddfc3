// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Which receive a message goes into at an endpoint with many peers: posted receives,
// messages that came unexpected, and MPI's order between them. An endpoint has one Matching
// for its tagged messages and one for the others, whose tag is always 0 and whose receives
// ignore nothing. Under the domain's lock.
//
// A receive of (tag, ignore, source) takes a message of (t, s) if tag and t agree in all bits
// outside `ignore`, and its source is s or kAnySource. What is promised:
//
// - arrive() finds the receive that was posted first of all that take the message.
// - post() finds the message that came first of all that the receive takes.
// - So messages of one source are received in the order in which they came, wherever the
//   same receives could take them.
//
// How it is kept, and at what cost. Receives are a list at first, the oldest in front. As long as
// each message is for that one nothing more is needed: so it is where both sides post in the same
// order. The first message that is not for it has all of them hashed, and as long as some are,
// those that are posted are hashed at once. Receives that ignore the same bits, and name a source
// or not, are of one pattern. For one pattern, "takes" is equality: of the bits that count, and of
// the source if one is named. So each receive lies in a hash table under (pattern, bits that count,
// source), behind those that were posted before it under the same key. A message is looked up once
// for each pattern of which a receive is posted, which finds the first receive of each pattern that
// takes it; the least sequence number of these was posted first of all. An arrival costs the same
// whatever number of other receives is posted: one look-up where all name tag and source, and one
// more for each further pattern, eight at most. MPI has four: source and tag, each given or not.
// Receives of a ninth pattern and more are a list, which is gone through from the oldest on, to the
// first that takes the message.
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
// So a match is 51 instructions where messages come in the order of their receives, at most 290
// among 10,000 other receives, and at most 570 behind 100,000 other messages (an exact one 150):
// test/bench/README.md. What is linear: receives of more than eight patterns at once; messages
// looked for by a pattern whose index gives way to others' each time; cancel_each(), take_each()
// and find_posted().
//
// post(), peek() and arrive() allocate: larger tables, and indexes; they do without if there is no
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
#include <utility>

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
        from_ = source;
        stays_ = stays;
    }
    std::uint64_t tag() const { return tag_; } // without the ignored bits
    std::uint64_t ignore() const { return ~counts_; }
    RdmSource source() const { return static_cast<RdmSource>(from_); }
    bool stays() const { return stays_; }
    bool takes(std::uint64_t tag, RdmSource source) const {
        return (tag & counts_) == tag_ && (this->source() == source || any_source());
    }

  private:
    friend class Matching;
    bool any_source() const { return source() == kAnySource; }

    std::uint64_t tag_ = 0;
    std::uint64_t counts_ = ~std::uint64_t{0};
    std::uint64_t seq_ = 0;
    std::uint64_t from_ = kAnySource; // while posted with the pattern, or kListed, above
    bool stays_ = false;
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
    // `from`: the source, and a pattern above it. `shift`: 64 - n; n is 1 to 32.
    std::size_t bucket(std::uint64_t tag, std::uint64_t from, unsigned shift) const {
        return static_cast<std::size_t>((tag * by_tag_ + from * by_from_) >> shift);
    }

  private:
    std::uint64_t by_tag_;
    std::uint64_t by_from_;
};

// Chains that grow in number, not in length.
template <class T> class MatchTable {
  public:
    using Bucket = base::List<T, InBucket>;

    MatchTable() : buckets_(new Bucket[std::size_t{1} << kFirstBits]) {}

    unsigned shift() const { return shift_; }
    Bucket& at(std::size_t bucket) { return buckets_[bucket]; }
    // There should be more buckets for that many.
    bool crowded(std::size_t members) const { return members > limit_; }
    // Buckets for that many. `where(member, shift)`: the bucket that a member belongs into. It
    // stays as it is if there is no memory.
    template <class Where> void grow(std::size_t members, Where&& where);
    template <class Call> void each_bucket(Call&& call) {
        for (std::size_t i = 0; i < std::size_t{1} << (64 - shift_); ++i) {
            call(buckets_[i]);
        }
    }

  private:
    static constexpr unsigned kFirstBits = 6;
    static constexpr std::size_t kLoad = 2; // members a bucket

    std::unique_ptr<Bucket[]> buckets_;
    unsigned shift_ = 64 - kFirstBits;
    std::size_t limit_ = kLoad << kFirstBits;
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
    [[gnu::always_inline]] UnexpectedMessage* post(PostedReceive& receive) {
        DAT_ASSERT(!posted(receive));
        if (held_ != 0) [[unlikely]] {
            if (UnexpectedMessage* const found = take_for(receive)) {
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
        if (!posted(receive)) {
            return false;
        }
        retire(receive);
        return true;
    }
    static bool posted(const PostedReceive& receive) {
        return base::List<PostedReceive, InBucket>::holds(receive);
    }
    static bool kept(const UnexpectedMessage& message) {
        return base::List<UnexpectedMessage, InOrder>::holds(message);
    }

    // --- a message comes ---

    // The receive that it goes into, which is posted no longer unless it stays; nullptr: none
    // takes it, so that it is to be held.
    [[gnu::always_inline]] PostedReceive* arrive(std::uint64_t tag, RdmSource source) {
        if (!listed_.empty()) {
            PostedReceive& oldest = listed_.front();
            if (oldest.takes(tag, source)) [[likely]] {
                if (!oldest.stays_) {
                    unlist(oldest);
                }
                return &oldest;
            }
        }
        return arrive_hashed(tag, source);
    }
    // It came last of all, and arrive() found nothing for it. Never fails.
    void keep(UnexpectedMessage& message) {
        DAT_ASSERT(!kept(message));
        messages_.at(hash_.bucket(message.tag_, message.source_, messages_.shift())).push(message);
        recent_.push(message);
        ++held_;
    }

    // --- all of them; the cost is that of going through all ---

    bool any_posted() const { return hashed_ != 0 || !listed_.empty(); }
    std::size_t posted() {
        std::size_t listed = 0;
        listed_.each([&](const PostedReceive&) { ++listed; });
        return listed + hashed_count();
    }
    std::size_t held() const { return held_; }
    // Takes out each receive for which `test` holds and calls `call` with it, in no order.
    // Neither calls anything here.
    template <class Test, class Call> void cancel_each(Test&& test, Call&& call) {
        const auto sweep = [&](base::List<PostedReceive, InBucket>& list) {
            base::List<PostedReceive, InBucket> all;
            all.take(list);
            while (!all.empty()) {
                PostedReceive& each = all.front();
                if (test(std::as_const(each))) {
                    retire(each);
                    call(each);
                } else {
                    all.remove(each);
                    list.push(each);
                }
            }
        };
        sweep(listed_);
        receives_.each_bucket(sweep);
        sweep(others_);
    }
    // The receives that name `source` and no other (FI_SOURCE_ERR).
    template <class Call> void source_died(RdmSource source, Call&& call) {
        cancel_each([=](const PostedReceive& r) { return r.source() == source; }, call);
    }
    // One receive for which `test` holds, which stays posted; nullptr: there is none.
    template <class Test> PostedReceive* find_posted(Test&& test) {
        PostedReceive* found = listed_.find(test);
        found = found ? found : others_.find(test);
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
        std::uint64_t also = 0; // of `from`: its number, above ~0 if of any source, else 0
        std::size_t posted = 0;

        bool is_of(const PostedReceive& r) const {
            return counts == r.counts_ && (static_cast<RdmSource>(also) != 0) == r.any_source();
        }
    };

    static constexpr std::uint64_t kListed = std::uint64_t{kPatterns + 1} << 32; // in `from_`

    void enlist(PostedReceive& receive) {
        if (hashed_ == 0) [[likely]] {
            receive.from_ |= kListed;
            listed_.push(receive);
        } else {
            hash(receive);
        }
    }
    void unlist(PostedReceive& receive) {
        base::List<PostedReceive, InBucket>::remove(receive);
        receive.from_ = receive.source();
    }
    // It is one of that pattern; returns how many are.
    std::size_t count(PostedReceive& receive, std::uint32_t number) {
        receive.from_ |= patterns_[number].also;
        receive.seq_ = next_seq_++;
        hashed_ |= 1u << number;
        return ++patterns_[number].posted;
    }
    void retire(PostedReceive& receive) {
        const auto number = static_cast<std::uint32_t>(receive.from_ >> 32);
        unlist(receive);
        if (number <= kPatterns && --patterns_[number].posted == 0) {
            hashed_ &= ~(1u << number);
        }
    }
    // Where a receive of a pattern that is hashed lies.
    MatchTable<PostedReceive>::Bucket& chain_of(const PostedReceive& r, unsigned shift) {
        return receives_.at(hash_.bucket(r.tag_, r.from_, shift));
    }
    // The first receive of that pattern that takes it.
    PostedReceive* of_pattern(unsigned number, std::uint64_t tag, RdmSource source) {
        const Pattern& pattern = patterns_[number];
        const std::uint64_t bits = tag & pattern.counts;
        const std::uint64_t from = source | pattern.also;
        return receives_.at(hash_.bucket(bits, from, receives_.shift()))
            .find([=](const PostedReceive& r) { return r.tag_ == bits && r.from_ == from; });
    }
    // The first message of (tag, source) among the bits that count.
    UnexpectedMessage* find(std::uint64_t tag, std::uint64_t counts, RdmSource source) {
        if (messages_.crowded(held_)) [[unlikely]] {
            grow_messages();
        }
        if (counts != ~std::uint64_t{0} || source == kAnySource) {
            return find_by_pattern(tag, counts, source);
        }
        return messages_.at(hash_.bucket(tag, source, messages_.shift()))
            .find([=](const UnexpectedMessage& m) { return m.tag_ == tag && m.source_ == source; });
    }

    // matching.cpp
    PostedReceive* arrive_hashed(std::uint64_t tag, RdmSource source);
    void hash(PostedReceive& receive);
    std::size_t hashed_count() const;
    UnexpectedMessage* take_for(const PostedReceive& receive);
    bool has_pattern(const PostedReceive& receive);
    PostedReceive* of_patterns(std::uint64_t tag, RdmSource source);
    UnexpectedMessage* find_by_pattern(std::uint64_t tag, std::uint64_t counts, RdmSource source);
    void drop_entry(UnexpectedMessage& message);
    void grow_receives();
    void grow_messages();

    const MatchHash hash_;
    std::uint32_t hashed_ = 0; // the patterns of which a receive is posted, as bits
    std::uint32_t usual_ = 0;  // the pattern of the last receive
    std::uint64_t next_seq_ = 0;
    std::size_t held_ = 0;
    std::array<Pattern, kPatterns + 1> patterns_; // the last one is of others_
    // Those that are not hashed, oldest first; where there are any, none is.
    base::List<PostedReceive, InBucket> listed_;
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
