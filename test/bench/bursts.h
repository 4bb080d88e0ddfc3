// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The command line and the bursts of fi_calls and raw_calls, whose counts are compared.
#ifndef DAT_TEST_BENCH_BURSTS_H
#define DAT_TEST_BENCH_BURSTS_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <unistd.h>

namespace dat::bench {

// `messages|writes BURST COUNT [SETTLE]`: what is done, how often at once and in all, and
// for how many microseconds the device has peace before the completions are taken.
struct Bursts {
    bool messages = false;
    std::uint64_t burst = 0;
    std::uint64_t count = 0;
    useconds_t settle = 0;

    // `words` are the last of the command line. False: they are not right; a burst has at
    // most `most`.
    bool parse(int count_of_words, char** words, std::uint64_t most) {
        if (count_of_words < 3) {
            return false;
        }
        const std::string_view mode = words[0];
        messages = mode == "messages";
        burst = std::strtoull(words[1], nullptr, 0);
        count = std::strtoull(words[2], nullptr, 0);
        settle = static_cast<useconds_t>(count_of_words > 3 ? std::atoi(words[3]) : 0);
        return (messages || mode == "writes") && burst >= 1 && burst <= most && count >= 1;
    }

    // Prints how many operations there were, and how many polls found nothing.
    template <class Ends> void run(Ends& ends) const {
        for (std::uint64_t done = 0; done < count; done += burst) {
            if (messages) {
                ends.post_receives(burst);
                ends.post_sends(burst);
            } else {
                ends.post_writes(burst);
            }
            if (settle > 0) {
                usleep(settle);
            }
            if (messages) {
                ends.take_received(burst);
            }
            ends.take_sent(burst);
        }
        std::printf("%llu, %llu in vain\n", static_cast<unsigned long long>(count),
                    static_cast<unsigned long long>(ends.in_vain()));
    }
};

} // namespace dat::bench

#endif
