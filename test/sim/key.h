// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The canonical form of a world as bytes, and a hash of it.
#ifndef DAT_SIM_KEY_H
#define DAT_SIM_KEY_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace dat::sim {

// Stands for the canonical form of a world: 128 bits, so that among the worlds of
// any search that fits a memory no two different ones share one.
struct Key {
    std::uint64_t high;
    std::uint64_t low;

    friend bool operator==(const Key&, const Key&) = default;
};

// A flat record of small numbers.
class Record {
  public:
    void reserve(std::size_t size) { bytes_.reserve(size); }
    template <class... Numbers> void add(Numbers... values) {
        (add_one(static_cast<std::int64_t>(values)), ...);
    }
    void append(const Record& other) { bytes_ += other.bytes_; }
    const std::string& bytes() const { return bytes_; }
    friend bool operator<(const Record& a, const Record& b) { return a.bytes_ < b.bytes_; }

  private:
    void add_one(std::int64_t number) {
        if (number >= -64 && number < 64) {
            bytes_ += static_cast<char>(number + 64);
            return;
        }
        bytes_ += '\xff'; // no short number looks like that
        for (int shift = 0; shift < 64; shift += 8) {
            bytes_ += static_cast<char>((number >> shift) & 0xff);
        }
    }

    std::string bytes_;
};

inline Key key_of(std::string_view bytes) {
    constexpr auto folded = [](std::uint64_t n) { return n ^ (n >> 32); };
    Key key{0x9e3779b97f4a7c15 ^ bytes.size(), 0xd1b54a32d192ed03};
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
        key.high = folded((key.high ^ word) * 0xbf58476d1ce4e5b9);
        key.low = folded((key.low + word) * 0x94d049bb133111eb) ^ (key.high >> 1);
    }
    return {folded(key.high * 0xff51afd7ed558ccd), folded(key.low * 0xc4ceb9fe1a85ec53)};
}

} // namespace dat::sim

#endif
