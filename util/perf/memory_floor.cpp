// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See memory_floor.h.
#include "memory_floor.h"

#include "buffer.h"
#include "check_bytes.h"
#include "patterns.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

namespace dat::perf {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kApart = 128; // processors fetch lines in pairs
constexpr std::size_t kSlots = 256; // of the ring
constexpr std::size_t kRingLimit = 8192;

using Number = std::atomic<std::uint64_t>;

// What lies in the shared memory: a line written by each side, then each side's bytes.
Number& number_of(const SharedMemory& shared, Role role) {
    return *reinterpret_cast<Number*>(shared.data() + (role == Role::client ? 0 : kApart));
}
char* bytes_of(const SharedMemory& shared, Role role, std::size_t size) {
    return shared.data() + 4096 + (role == Role::client ? 0 : (size + 4095) / 4096 * 4096);
}

void wait_for(const Number& number, std::uint64_t wanted) {
    while (number.load(std::memory_order_acquire) < wanted) {
    }
}

// Stops a compiler from leaving out a copy that nobody reads.
void used(const void* bytes) { asm volatile("" : : "r"(bytes) : "memory"); }

Result line_ping(const Case& what, Peer& peer, const SharedMemory& shared) {
    const Role other = peer.client() ? Role::server : Role::client;
    Number& mine = number_of(shared, peer.role());
    const Number& theirs = number_of(shared, other);
    const char* from = bytes_of(shared, other, what.size);
    Buffer into(what.size);
    std::uint64_t at = 0;
    const auto rounds = [&](std::uint64_t n) {
        for (const std::uint64_t end = at + n; at < end;) {
            ++at;
            if (peer.client()) {
                mine.store(at, std::memory_order_release);
            }
            wait_for(theirs, at);
            if (what.size > kLine) {
                std::memcpy(into.data(), from, what.size);
                used(into.data());
            }
            if (!peer.client()) {
                mine.store(at, std::memory_order_release);
            }
        }
    };
    const std::uint64_t warm = warm_operations(what);
    rounds(warm);
    const Stopwatch warming;
    rounds(warm);
    const std::uint64_t count = agree(peer, what.amount, warm, warming.seconds(), [] {});
    Result result;
    in_pieces(result, count, rounds);
    return result;
}

// A ring of messages, each with its number behind it: the client puts, the server takes
// and says from time to time how far it is.
class Ring {
  public:
    Ring(const SharedMemory& shared, std::size_t size)
        : size_(size), stride_((size + sizeof(Number) + kLine - 1) / kLine * kLine),
          slots_(shared.data() + 4096), taken_(number_of(shared, Role::server)) {}

    void put(std::uint64_t n, const char* from) { // n from 1
        if (n > known_ + kSlots) {
            wait_for(taken_, n - kSlots);
            known_ = taken_.load(std::memory_order_acquire);
        }
        std::memcpy(slot(n) + sizeof(Number), from, size_);
        number(n).store(n, std::memory_order_release);
    }
    void take(std::uint64_t n, char* into) {
        wait_for(number(n), n);
        std::memcpy(into, slot(n) + sizeof(Number), size_);
        used(into);
        if (n % (kSlots / 4) == 0) {
            taken_.store(n, std::memory_order_release);
        }
    }
    void all_taken(std::uint64_t n) { taken_.store(n, std::memory_order_release); }
    void wait_until_taken(std::uint64_t n) const { wait_for(taken_, n); }

  private:
    char* slot(std::uint64_t n) { return slots_ + n % kSlots * stride_; }
    Number& number(std::uint64_t n) { return *reinterpret_cast<Number*>(slot(n)); }

    const std::size_t size_;
    const std::size_t stride_;
    char* const slots_;
    Number& taken_;
    std::uint64_t known_ = 0;
};

Result ring_stream(const Case& what, Peer& peer, const SharedMemory& shared) {
    Ring ring(shared, what.size);
    Buffer bytes(what.size);
    std::uint64_t at = 0;
    const auto move = [&](std::uint64_t n) {
        for (const std::uint64_t end = at + n; at < end;) {
            ++at;
            peer.client() ? ring.put(at, bytes.data()) : ring.take(at, bytes.data());
        }
        peer.client() ? ring.wait_until_taken(at) : ring.all_taken(at);
    };
    const std::uint64_t warm = warm_operations(what);
    move(warm);
    const Stopwatch warming;
    move(warm);
    Result result;
    result.operations = agree(peer, what.amount, warm, warming.seconds(), [] {});
    const Stopwatch watch;
    move(result.operations);
    watch.stop(result);
    return result;
}

// Where the other process's memory is.
struct Place {
    pid_t process = 0;
    char* bytes = nullptr;
};

void read_memory(const Place& from, char* into, std::size_t size) {
    const iovec local{into, size};
    const iovec remote{from.bytes, size};
    const ssize_t n = ::process_vm_readv(from.process, &local, 1, &remote, 1, 0);
    if (n < 0) {
        throw NotOffered(std::string("process_vm_readv is refused here: ") + std::strerror(errno));
    }
    if (static_cast<std::size_t>(n) != size) {
        fail("process_vm_readv read %zd bytes of %zu", n, size);
    }
}

Result other_memory(const Case& what, Peer& peer) {
    Buffer bytes(what.size);
    if (!peer.client()) {
        fill_bytes(bytes.data(), what.size, 1);
        peer.tell_value(Place{::getpid(), bytes.data()});
        Result result;
        result.operations = peer.hear_value<std::uint64_t>([] { ::usleep(1000); });
        return result;
    }
    const auto from = peer.hear_value<Place>([] {});
    const auto reads = [&](std::uint64_t n) {
        for (std::uint64_t i = 0; i < n; ++i) {
            read_memory(from, bytes.data(), what.size);
        }
    };
    const std::uint64_t warm = warm_operations(what);
    const Stopwatch warming;
    reads(warm);
    check_bytes(bytes.data(), what.size, 1);
    const std::uint64_t count = wanted_operations(what.amount, warm, warming.seconds());
    Result result;
    in_pieces(result, count, reads);
    peer.tell_value(count); // until here the server's memory is there
    return result;
}

Result copies(const Case& what, Peer& peer) {
    Buffer from(what.size);
    Buffer into(what.size);
    const auto copy = [&](std::uint64_t n) {
        for (std::uint64_t i = 0; i < n; ++i) {
            std::memcpy(into.data(), from.data(), what.size);
            used(into.data());
        }
    };
    const std::uint64_t warm = warm_operations(what);
    const Stopwatch warming;
    copy(warm);
    Result result;
    const std::uint64_t count = agree(peer, what.amount, warm, warming.seconds(), [] {});
    if (peer.client()) {
        in_pieces(result, count, copy);
    }
    result.operations = count;
    return result;
}

} // namespace

SharedMemory::SharedMemory(std::size_t size)
    : size_(size), data_(static_cast<char*>(::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                                   MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    if (data_ == MAP_FAILED) {
        throw std::bad_alloc();
    }
}

SharedMemory::~SharedMemory() { ::munmap(data_, size_); }

std::size_t shared_size(const Case& what) {
    const std::size_t bytes = (what.size + 4095) / 4096 * 4096 * 2;
    const std::size_t ring = kSlots * (what.size + 2 * kLine);
    return 4096 + (what.size <= kRingLimit ? bytes + ring : bytes);
}

Result memory_floor(const Case& what, Peer& peer, const SharedMemory& shared) {
    switch (what.pattern) {
    case Pattern::ping:
        return line_ping(what, peer, shared);
    case Pattern::stream:
    case Pattern::write:
    case Pattern::read:
        return what.size <= kRingLimit ? ring_stream(what, peer, shared) : other_memory(what, peer);
    case Pattern::read_one:
        return other_memory(what, peer);
    case Pattern::copy:
        return copies(what, peer);
    case Pattern::turns:
    case Pattern::loaded:
    case Pattern::both:
    case Pattern::incast:
    case Pattern::atomic:
    case Pattern::atomic_one:
    case Pattern::connect:
        break;
    }
    throw NotOffered("memory has no such pattern");
}

} // namespace dat::perf
