// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See payload.h.
#include "payload.h"

#include <algorithm>
#include <cstring>

namespace dat::test {

namespace {

constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;
constexpr std::size_t kWord = sizeof(std::uint64_t);

// Spreads each bit over all.
std::uint64_t spread(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

std::uint64_t word_at(std::uint64_t seed, std::size_t index) {
    return spread(seed + (index + 1) * kStep);
}

std::uint64_t filling_of(const Head& head) { return spread(head.connection) + head.sequence; }

} // namespace

std::uint64_t Random::next() { return spread(state_ += kStep); }

void fill(std::uint8_t* bytes, std::size_t size, std::uint64_t seed, std::size_t offset) {
    for (std::size_t at = 0; at < size; at += kWord) {
        const std::uint64_t word = word_at(seed, (offset + at) / kWord);
        std::memcpy(bytes + at, &word, std::min(kWord, size - at));
    }
}

bool holds(const std::uint8_t* bytes, std::size_t size, std::uint64_t seed, std::size_t offset) {
    for (std::size_t at = 0; at < size; at += kWord) {
        const std::uint64_t word = word_at(seed, (offset + at) / kWord);
        if (std::memcmp(bytes + at, &word, std::min(kWord, size - at)) != 0)
            return false;
    }
    return true;
}

std::uint64_t sum_of(const void* bytes, std::size_t size, std::uint64_t start) {
    const auto* from = static_cast<const std::uint8_t*>(bytes);
    std::uint64_t sum = start + size * kStep;
    for (std::size_t at = 0; at < size; at += kWord) {
        std::uint64_t word = 0;
        std::memcpy(&word, from + at, std::min(kWord, size - at));
        sum = (sum ^ word) * 0xff51afd7ed558ccd;
        sum ^= sum >> 32;
    }
    return sum;
}

void write_message(std::uint8_t* to, Head head) {
    fill(to + sizeof head, head.size - sizeof head, filling_of(head));
    head.sum = 0;
    std::memcpy(to, &head, sizeof head);
    head.sum = sum_of(to, head.size);
    std::memcpy(to, &head, sizeof head);
}

bool read_message(const std::uint8_t* from, std::size_t size, Head& head) {
    if (size < sizeof head)
        return false;
    std::memcpy(&head, from, sizeof head);
    if (head.size != size)
        return false;
    Head without = head;
    without.sum = 0;
    // The sum goes over words: the head is a whole number of them.
    static_assert(sizeof(Head) % kWord == 0);
    std::uint64_t sum = size * kStep;
    const auto add = [&](const std::uint8_t* bytes, std::size_t count) {
        sum = sum_of(bytes, count, sum - count * kStep);
    };
    add(reinterpret_cast<const std::uint8_t*>(&without), sizeof without);
    add(from + sizeof head, size - sizeof head);
    return sum == head.sum && holds(from + sizeof head, size - sizeof head, filling_of(head));
}

Hello sealed(Hello hello) {
    hello.sum = sum_of(&hello, offsetof(Hello, sum));
    return hello;
}

bool is_sealed(const Hello& hello) { return sealed(hello).sum == hello.sum; }

} // namespace dat::test
