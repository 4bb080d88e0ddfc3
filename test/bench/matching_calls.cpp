// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// core::Matching for callgrind: messages and receives that meet, one after another, among others
// that do not. matching_calls.sh starts it and subtracts two lengths of run.
//
//   matching_calls expected|unexpected|nothing exact|source|tag|bits POSTED HELD COUNT
//
//   expected: the receive is there first; unexpected: the message is; nothing: neither comes,
//   so that the loop itself can be subtracted. The receive names
//   both tag and source (exact), leaves one open (source, tag), or ignores some bits of the tag
//   and the source (bits). POSTED receives and HELD messages of other tags are in the way.
//
// Prints COUNT.
#include "core/matching.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

namespace {

using namespace dat::core;

constexpr RdmSource kSource = 3;
constexpr std::uint64_t kTag = std::uint64_t{1} << 40;

struct Want {
    std::uint64_t ignore;
    RdmSource source;
};

Want want_of(std::string_view what) {
    if (what == "exact") {
        return {0, kSource};
    }
    if (what == "source") {
        return {0, kAnySource};
    }
    if (what == "tag") {
        return {kTag - 1, kSource};
    }
    if (what == "bits") {
        return {0xff, kAnySource};
    }
    std::exit(2);
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 6) {
        std::fputs("usage: matching_calls expected|unexpected|nothing exact|source|tag|bits POSTED "
                   "HELD COUNT\n",
                   stderr);
        return 2;
    }
    const bool expected = std::strcmp(argv[1], "expected") == 0;
    const bool nothing = std::strcmp(argv[1], "nothing") == 0;
    const Want want = want_of(argv[2]);
    const std::uint64_t posted = std::strtoull(argv[3], nullptr, 10);
    const std::uint64_t held = std::strtoull(argv[4], nullptr, 10);
    const std::uint64_t count = std::strtoull(argv[5], nullptr, 10);

    Matching matching(0x5eed);
    const std::unique_ptr<PostedReceive[]> receives(new PostedReceive[posted]);
    const std::unique_ptr<UnexpectedMessage[]> messages(new UnexpectedMessage[held]);
    for (std::uint64_t i = 0; i < held; ++i) {
        messages[i].from(i, static_cast<RdmSource>(i % 1000 + 10));
        matching.keep(messages[i]);
    }
    for (std::uint64_t i = 0; i < posted; ++i) { // every other one is a wildcard
        receives[i].want((2 * kTag) + (i << 8), i % 2 == 0 ? 0 : 0xff,
                         i % 2 == 0 ? kSource : kAnySource);
        matching.post(receives[i]);
    }

    PostedReceive receive;
    UnexpectedMessage message;
    std::uint64_t met = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t tag = kTag + (i & 127);
        receive.want(tag, want.ignore, want.source);
        if (nothing) {
            met += Matching::posted(receive) ? 0 : 1;
        } else if (expected) {
            matching.post(receive);
            met += matching.arrive(tag, kSource) == &receive ? 1 : 0;
        } else {
            if (!matching.arrive(tag, kSource)) {
                message.from(tag, kSource);
                matching.keep(message);
            }
            met += matching.post(receive) == &message ? 1 : 0;
        }
    }
    matching.cancel_each([](const PostedReceive&) { return true; }, [](PostedReceive&) {});
    matching.take_each([](const UnexpectedMessage&) { return true; }, [](UnexpectedMessage&) {});
    std::printf("%llu\n", static_cast<unsigned long long>(met));
    return met == count ? 0 : 1;
}
