// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What travels between two parties of a proof: numbers that a seed decides, memory whose
// contents follow from a seed, and the head of each message, with a sum over all of it.
#ifndef DAT_TEST_ATTACK_PAYLOAD_H
#define DAT_TEST_ATTACK_PAYLOAD_H

#include <cstddef>
#include <cstdint>

namespace dat::test {

// The same numbers for the same seed, on each machine.
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next();
    // Less than `bound`, which is at least 1.
    std::uint64_t below(std::uint64_t bound) { return next() % bound; }
    std::uint64_t between(std::uint64_t low, std::uint64_t high) {
        return low + below(high - low + 1);
    }
    // True once in so many times.
    bool once_in(std::uint64_t times) { return below(times) == 0; }

  private:
    std::uint64_t state_;
};

// Bytes that follow from `seed` and from their place, which begins at `offset`, a multiple of 8.
void fill(std::uint8_t* bytes, std::size_t size, std::uint64_t seed, std::size_t offset = 0);
bool holds(const std::uint8_t* bytes, std::size_t size, std::uint64_t seed, std::size_t offset = 0);
// A sum of 64 bits, which changes with each bit and its place. `start`: of what came before.
std::uint64_t sum_of(const void* bytes, std::size_t size, std::uint64_t start = 0);

enum class Kind : std::uint32_t {
    kData,
    kAck,     // carries `consumed` alone, and asks for none
    kGoodbye, // the last message of this sender
};

// The first bytes of each message; the rest is filled from its connection and sequence.
struct Head {
    std::uint64_t connection; // the number that both ends agreed on
    std::uint64_t sequence;   // from 0 on, for each direction
    std::uint32_t size;       // of the message, with this
    Kind kind;
    std::uint64_t consumed;  // messages of the receiver that the sender has taken
    std::uint64_t counter;   // what the sender's finished atomics have made of the receiver's
    std::uint32_t slot;      // of the receiver, which the sender has written before this
    std::uint32_t slot_size; // so many bytes; 0: none
    std::uint64_t slot_sum;
    std::uint64_t sum; // of all of the message but this
};

// Writes the message of `head.size` bytes, with its filling and sum.
void write_message(std::uint8_t* to, Head head);
// False: these bytes are no message as it was written.
bool read_message(const std::uint8_t* from, std::size_t size, Head& head);

// Private data of both sides of a handshake: where the sender's memory is.
struct Hello {
    std::uint64_t connection;
    std::uint64_t address; // of its counter, slots and readable memory
    std::uint64_t key;
    std::uint64_t read_seed; // what the readable memory was filled from
    std::uint64_t sum;
};

Hello sealed(Hello hello);
bool is_sealed(const Hello& hello);

} // namespace dat::test

#endif
