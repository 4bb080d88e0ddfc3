// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What of matching is not on the path of every message: patterns, larger tables, and the
// indexes of messages. May include: core, base.
#include "core/matching.h"

#include <algorithm>
#include <new>
#include <utility>

namespace dat::core {

namespace {

constexpr std::uint64_t kAllBits = ~std::uint64_t{0};

// splitmix64's output function: each bit of the secret reaches each bit of the number.
std::uint64_t scatter(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

} // namespace

MatchHash::MatchHash(std::uint64_t secret)
    : by_tag_(scatter(secret + 0x9e3779b97f4a7c15) | 1),
      by_rest_(scatter(secret + 0x3c6ef372fe94f82a) | 1) {}

template <class T>
template <class Where>
void MatchTable<T>::grow(std::size_t members, Where&& where) {
    unsigned bits = bits_;
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
            larger[where(member, bits)].push(member);
        }
    });
    buckets_ = std::move(larger);
    bits_ = bits;
}

class MessageIndexes {};

Matching::Matching(std::uint64_t secret) : hash_(secret) {
    patterns_[1].any = kAnySource; // any source, a whole tag
}

Matching::~Matching() { DAT_ASSERT(posted_ == 0 && held_ == 0); }

// The pattern of a receive; kPatterns: there are too many. A pattern of which nothing is posted
// is free to become another one; the first two are what programs mostly use, and stay.
unsigned Matching::pattern_of(const PostedReceive& receive) {
    const RdmSource any = receive.source_ == kAnySource ? kAnySource : 0;
    unsigned unused = kPatterns;
    for (unsigned i = 0; i < kPatterns; ++i) {
        if (patterns_[i].counts == receive.counts_ && patterns_[i].any == any) {
            return i;
        }
        if (i > 1 && patterns_[i].posted == 0) {
            unused = i;
        }
    }
    if (unused != kPatterns) {
        patterns_[unused] = {receive.counts_, any, 0};
    }
    return unused;
}

// The oldest of `first` and of the receives in the list that take the message.
PostedReceive* Matching::among_others(std::uint64_t tag, RdmSource source, PostedReceive* first) {
    PostedReceive* const found = others_.find([=](const PostedReceive& r) {
        return (first && r.seq_ > first->seq_) || r.takes(tag, source);
    });
    return found && (!first || found->seq_ < first->seq_) ? found : first;
}

void Matching::grow_receives() {
    receives_.grow(posted_,
                   [this](const PostedReceive& r, unsigned bits) { return where(r, bits); });
}

void Matching::grow_messages() {
    messages_.grow(held_, [this](const UnexpectedMessage& m, unsigned bits) {
        return hash_.bucket(m.tag_, m.source_, 0, bits);
    });
}

UnexpectedMessage* Matching::find_by_pattern(std::uint64_t tag, std::uint64_t counts,
                                             RdmSource source) {
    const auto taken = [=](const UnexpectedMessage& m) {
        return (m.tag_ & counts) == tag && (source == kAnySource || m.source_ == source);
    };
    UnexpectedMessage* const found = indexed_.find(taken);
    return found ? found : recent_.find(taken);
}

void Matching::drop_entry(UnexpectedMessage&) {}

} // namespace dat::core
