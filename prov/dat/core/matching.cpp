// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What of matching is not on the path of every message: patterns, larger tables, and the
// indexes of messages.
#include "core/matching.h"

#include "base/attempt.h"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

namespace dat::core {

namespace {

// splitmix64's output function: each bit of the secret reaches each bit of the number.
std::uint64_t scatter(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

} // namespace

MatchHash::MatchHash(std::uint64_t secret)
    : by_tag_(scatter(secret + 0x9e3779b97f4a7c15) | 1),
      by_from_(scatter(secret + 0x3c6ef372fe94f82a) | 1) {}

template <class T>
template <class Where>
void MatchTable<T>::grow(std::size_t members, Where&& where) {
    unsigned bits = 64 - shift_;
    while (bits < 32 && members > std::size_t{1} << bits) {
        ++bits;
    }
    std::unique_ptr<Bucket[]> larger(new (std::nothrow) Bucket[std::size_t{1} << bits]);
    if (!larger) {
        return;
    }
    // What is in one chain stays in its order, so equal keys do.
    each_bucket([&](Bucket& from) {
        while (!from.empty()) {
            T& member = from.pop();
            larger[where(member, 64 - bits)].push(member);
        }
    });
    buckets_ = std::move(larger);
    shift_ = 64 - bits;
    limit_ = kLoad << bits;
}

// Of the messages in one list, in its order, by the keys of up to kIndexes patterns. A message
// has one entry, with a link for each pattern: so to leave costs the same wherever it lies.
class MessageIndexes {
  public:
    using Messages = base::List<UnexpectedMessage, InOrder>;

    explicit MessageIndexes(const MatchHash& hash) : hash_(hash) {}

    // Takes over all of `recent`, whose messages came later than those of `indexed`, which it
    // has. False: no memory; some are where they were.
    bool take_over(Messages& indexed, Messages& recent, std::size_t held) {
        if (indexed.empty()) {
            forget();
        }
        if (held > entries_.size() && !grow(indexed, held)) {
            return false;
        }
        while (!recent.empty()) {
            UnexpectedMessage& message = recent.pop();
            indexed.push(message);
            enter(message);
        }
        return true;
    }
    // Has an index of that pattern from now on. `which`: it. False: no memory.
    bool want(Messages& indexed, std::uint64_t counts, RdmSource any, std::size_t& which) {
        which = 0;
        for (std::size_t i = 0; i < indexes_.size(); ++i) {
            if (indexes_[i].on && indexes_[i].counts == counts && indexes_[i].any == any) {
                which = i;
                indexes_[i].needed = ++clock_;
                return true;
            }
            const auto age = [this](std::size_t n) {
                return indexes_[n].on ? indexes_[n].needed : 0;
            };
            which = age(i) < age(which) ? i : which;
        }
        Index& index = indexes_[which];
        index.on = false;
        if (!base::attempt([&] { index.first.assign(entries_.size(), kNone); })) {
            return false;
        }
        index.counts = counts;
        index.any = any;
        index.needed = ++clock_;
        index.on = true;
        indexed.each([&](UnexpectedMessage& message) { chain(which, message.entry_); });
        return true;
    }
    // The oldest message of that key.
    UnexpectedMessage* find(std::size_t which, std::uint64_t tag, RdmSource source) const {
        const Index& index = indexes_[which];
        for (std::uint32_t at = index.first[bucket(index, tag, source)]; at != kNone;
             at = entries_[at].in[which].next) {
            UnexpectedMessage& m = *entries_[at].message;
            if ((m.tag_ & index.counts) == tag && (m.source_ | index.any) == source) {
                return &m;
            }
        }
        return nullptr;
    }
    void leave(UnexpectedMessage& message) {
        const std::uint32_t at = std::exchange(message.entry_, kNone);
        for (std::size_t i = 0; i < indexes_.size(); ++i) {
            if (!indexes_[i].on) {
                continue;
            }
            const Link link = entries_[at].in[i];
            std::uint32_t& first = indexes_[i].first[bucket_of(i, message)];
            // The first one's `previous` is the last; the last one has no `next`.
            const std::uint32_t behind = link.next != kNone ? link.next : first;
            entries_[behind].in[i].previous = link.previous;
            if (first == at) {
                first = link.next;
            } else {
                entries_[link.previous].in[i].next = link.next;
            }
        }
        entries_[at].in[0].next = std::exchange(unused_, at);
    }

  private:
    static constexpr std::uint32_t kNone = ~0u;
    static constexpr std::size_t kFewest = 64; // entries

    struct Link {
        std::uint32_t next;
        std::uint32_t previous;
    };
    struct Entry {
        UnexpectedMessage* message = nullptr;
        std::array<Link, Matching::kIndexes> in{};
    };
    struct Index {
        bool on = false;
        std::uint64_t counts = 0;
        RdmSource any = 0;
        std::uint64_t needed = 0;         // when last
        std::vector<std::uint32_t> first; // a bucket an entry
    };

    std::size_t bucket(const Index& index, std::uint64_t tag, RdmSource source) const {
        const auto bits = static_cast<unsigned>(std::countr_zero(index.first.size()));
        return hash_.bucket(tag, source, 64 - bits);
    }
    std::size_t bucket_of(std::size_t which, const UnexpectedMessage& m) const {
        const Index& index = indexes_[which];
        return bucket(index, m.tag_ & index.counts, m.source_ | index.any);
    }
    void forget() {
        for (Index& index : indexes_) {
            index.on = false;
        }
    }
    // Entries for that many, and twice as many buckets as before; all are entered anew.
    bool grow(Messages& indexed, std::size_t held) {
        const std::size_t count = std::max(std::bit_ceil(held), kFewest);
        std::vector<Entry> entries;
        std::array<std::vector<std::uint32_t>, Matching::kIndexes> firsts;
        const bool there = base::attempt([&] {
            entries.resize(count);
            for (std::size_t i = 0; i < indexes_.size(); ++i) {
                firsts[i].assign(indexes_[i].on ? count : 0, kNone);
            }
        });
        if (!there) {
            return false;
        }
        entries_.swap(entries);
        for (std::size_t i = 0; i < indexes_.size(); ++i) {
            indexes_[i].first.swap(firsts[i]);
        }
        unused_ = kNone;
        for (std::size_t i = count; i-- > 0;) {
            entries_[i].in[0].next = std::exchange(unused_, static_cast<std::uint32_t>(i));
        }
        indexed.each([this](UnexpectedMessage& message) { enter(message); });
        return true;
    }
    // There is an unused entry.
    void enter(UnexpectedMessage& message) {
        const std::uint32_t at = unused_;
        unused_ = entries_[at].in[0].next;
        entries_[at].message = &message;
        message.entry_ = at;
        for (std::size_t i = 0; i < indexes_.size(); ++i) {
            if (indexes_[i].on) {
                chain(i, at);
            }
        }
    }
    void chain(std::size_t which, std::uint32_t at) {
        std::uint32_t& first = indexes_[which].first[bucket_of(which, *entries_[at].message)];
        if (first == kNone) {
            first = at;
            entries_[at].in[which] = {kNone, at};
            return;
        }
        const std::uint32_t last = std::exchange(entries_[first].in[which].previous, at);
        entries_[last].in[which].next = at;
        entries_[at].in[which] = {kNone, last};
    }

    const MatchHash& hash_;
    std::vector<Entry> entries_; // a power of two
    std::uint32_t unused_ = kNone;
    std::array<Index, Matching::kIndexes> indexes_;
    std::uint64_t clock_ = 0;
};

Matching::Matching(std::uint64_t secret) : hash_(secret) {
    for (std::size_t i = 0; i < patterns_.size(); ++i) {
        patterns_[i].also = std::uint64_t{i} << 32;
    }
    patterns_[1].also |= kAnySource; // any source, a whole tag
}

Matching::~Matching() { DAT_ASSERT(listed_.empty() && hashed_ == 0 && held_ == 0); }

std::size_t Matching::hashed_count() const {
    std::size_t sum = 0;
    for (const Pattern& pattern : patterns_) {
        sum += pattern.posted;
    }
    return sum;
}

// The first message that it takes, which is held no longer.
UnexpectedMessage* Matching::take_for(const PostedReceive& receive) {
    UnexpectedMessage* const found = find(receive.tag_, receive.counts_, receive.source());
    if (found) {
        take(*found);
    }
    return found;
}

// As arrive(), where the receive that was posted first does not take it.
PostedReceive* Matching::arrive_hashed(std::uint64_t tag, RdmSource source) {
    while (!listed_.empty()) {
        PostedReceive& receive = listed_.front();
        unlist(receive);
        hash(receive);
    }
    if (hashed_ == 0) {
        return nullptr;
    }
    const bool one = (hashed_ & (hashed_ - 1)) == 0 && hashed_ < 1u << kPatterns;
    PostedReceive* const first =
        one ? of_pattern(static_cast<unsigned>(std::countr_zero(hashed_)), tag, source)
            : of_patterns(tag, source);
    if (first && !first->stays_) {
        retire(*first);
    }
    return first;
}

void Matching::hash(PostedReceive& receive) {
    if (!patterns_[usual_].is_of(receive) && !has_pattern(receive)) [[unlikely]] {
        count(receive, kPatterns);
        others_.push(receive);
        return;
    }
    if (receives_.crowded(count(receive, usual_))) [[unlikely]] {
        grow_receives();
    }
    chain_of(receive, receives_.shift()).push(receive);
}

// Its pattern is the usual one now. False: there are too many. A pattern of which nothing is
// posted is free to become another one; the first two are what programs mostly use, and stay.
bool Matching::has_pattern(const PostedReceive& receive) {
    std::uint32_t unused = kPatterns;
    for (std::uint32_t i = 0; i < kPatterns; ++i) {
        if (patterns_[i].is_of(receive)) {
            usual_ = i;
            return true;
        }
        if (i > 1 && patterns_[i].posted == 0) {
            unused = i;
        }
    }
    if (unused == kPatterns) {
        return false;
    }
    const std::uint64_t any = receive.any_source() ? kAnySource : 0;
    patterns_[unused] = {receive.counts_, std::uint64_t{unused} << 32 | any, 0};
    usual_ = unused;
    return true;
}

// The first receive of all that takes it.
PostedReceive* Matching::of_patterns(std::uint64_t tag, RdmSource source) {
    PostedReceive* first = nullptr;
    for (std::uint32_t left = hashed_ & ((1u << kPatterns) - 1); left != 0; left &= left - 1) {
        PostedReceive* const found =
            of_pattern(static_cast<unsigned>(std::countr_zero(left)), tag, source);
        if (found && (!first || found->seq_ < first->seq_)) {
            first = found;
        }
    }
    PostedReceive* const other = others_.find([=](const PostedReceive& r) {
        return (first && r.seq_ > first->seq_) || r.takes(tag, source);
    });
    return other && (!first || other->seq_ < first->seq_) ? other : first;
}

void Matching::grow_receives() {
    receives_.grow(hashed_count(), [this](const PostedReceive& r, unsigned shift) {
        return hash_.bucket(r.tag_, r.from_, shift);
    });
}

void Matching::grow_messages() {
    messages_.grow(held_, [this](const UnexpectedMessage& m, unsigned shift) {
        return hash_.bucket(m.tag_, m.source_, shift);
    });
}

UnexpectedMessage* Matching::find_by_pattern(std::uint64_t tag, std::uint64_t counts,
                                             RdmSource source) {
    const auto taken = [=](const UnexpectedMessage& m) {
        return (m.tag_ & counts) == tag && (source == kAnySource || m.source_ == source);
    };
    std::uint32_t seen = 0;
    const auto glance = [&](const UnexpectedMessage& m) { return taken(m) || ++seen == kGlance; };
    UnexpectedMessage* found = indexed_.find(glance);
    found = found ? found : recent_.find(glance);
    if (!found || taken(*found)) {
        return found;
    }
    if (!indexes_) {
        indexes_.reset(new (std::nothrow) MessageIndexes(hash_));
    }
    std::size_t which = 0;
    if (indexes_ && indexes_->take_over(indexed_, recent_, held_) &&
        indexes_->want(indexed_, counts, source == kAnySource ? kAnySource : 0, which)) {
        return indexes_->find(which, tag, source);
    }
    found = indexed_.find(taken);
    return found ? found : recent_.find(taken);
}

void Matching::drop_entry(UnexpectedMessage& message) { indexes_->leave(message); }

} // namespace dat::core
