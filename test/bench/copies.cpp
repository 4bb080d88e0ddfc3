// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What copies of the C library and of the kernel take by how their ends are aligned to each other;
// see prov/dat/base/copy.h. One thread, TCP over loopback.
//
//   copies [BYTES]
//
//   BYTES: of a copy (16384); at most 32768, which a socket takes at once.
//
// Prints for each distance of the destination from the source, counted within a page, GB/s, of
// several runs the median: memcpy(3), dat::base::copy(), send(2) of a payload behind a header of
// that many bytes, and recv(2) of one whose memory lies that much further than a page's beginning.
#include "base/copy.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <vector>

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kMost = 32768;
constexpr int kRuns = 15;
constexpr std::size_t kAhead[] = {0, 1, 4, 16, 20, 31, 32, 44, 64, 2048, 4064, 4065, 4076, 4095};

struct alignas(kPage) Memory {
    std::array<std::byte, kMost + 2 * kPage> bytes{};
};

void check(bool good, const char* what) {
    if (!good) {
        throw std::runtime_error(what);
    }
}

// A connection of this process with itself.
class Loop {
  public:
    Loop() {
        sockaddr_in name{};
        name.sin_family = AF_INET;
        name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof name;
        auto* const address = reinterpret_cast<sockaddr*>(&name);
        const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
        out_ = ::socket(AF_INET, SOCK_STREAM, 0);
        const bool good = ::bind(listener, address, size) == 0 && ::listen(listener, 1) == 0 &&
                          ::getsockname(listener, address, &size) == 0 &&
                          ::connect(out_, address, size) == 0;
        in_ = good ? ::accept(listener, nullptr, nullptr) : -1;
        ::close(listener);
        const int on = 1;
        setsockopt(out_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    ~Loop() {
        ::close(in_);
        ::close(out_);
    }
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;

    void send(const std::byte* header, std::size_t header_size, const std::byte* from,
              std::size_t size) const {
        const iovec pieces[] = {{const_cast<std::byte*>(header), header_size},
                                {const_cast<std::byte*>(from), size}};
        check(::writev(out_, pieces, 2) == static_cast<ssize_t>(header_size + size), "writev");
    }
    void receive(std::byte* to, std::size_t size) const {
        while (size > 0) {
            const ssize_t n = ::recv(in_, to, size, 0);
            check(n > 0, "recv");
            to += n;
            size -= static_cast<std::size_t>(n);
        }
    }

  private:
    int in_ = -1;
    int out_ = -1;
};

using Clock = std::chrono::steady_clock;

// GB/s, of what takes `once` and copies so many bytes; `after` is not counted.
template <class Once, class After> double rate(std::size_t bytes, Once once, After after) {
    std::vector<double> runs;
    for (int run = 0; run < kRuns; ++run) {
        Clock::duration took{};
        int times = 0;
        while (took < std::chrono::milliseconds(1) && times < 1000) {
            const Clock::time_point begin = Clock::now();
            once();
            took += Clock::now() - begin;
            after();
            ++times;
        }
        runs.push_back(static_cast<double>(bytes) * times /
                       std::chrono::duration<double, std::nano>(took).count());
    }
    std::sort(runs.begin(), runs.end());
    return runs[runs.size() / 2];
}

// Hides from the compiler what is copied, and that it is not looked at.
void escape(const void* memory) { asm volatile("" : : "r"(memory) : "memory"); }

void print(std::size_t bytes) {
    const Loop loop;
    const auto from = std::make_unique<Memory>();
    const auto to = std::make_unique<Memory>();
    const auto nothing = [] {};
    std::printf("GB/s, %zu bytes\n%8s %8s %8s %8s %8s\n", bytes, "ahead", "memcpy", "copy", "send",
                "recv");
    for (const std::size_t ahead : kAhead) {
        std::byte* const source = from->bytes.data();
        std::byte* const target = to->bytes.data() + ahead;
        const double library = rate(
            bytes, [&] { std::memcpy(target, source, bytes), escape(target); }, nothing);
        const double own = rate(
            bytes, [&] { dat::base::copy(target, source, bytes), escape(target); }, nothing);
        const double sent = rate(
            bytes, [&] { loop.send(source, ahead, source, bytes); },
            [&] { loop.receive(to->bytes.data(), ahead + bytes); });
        double received = 0;
        {
            const auto send = [&] { loop.send(source, 0, source, bytes); };
            send();
            received = rate(
                bytes, [&] { loop.receive(target, bytes); }, send);
            loop.receive(target, bytes);
        }
        std::printf("%8zu %8.1f %8.1f %8.1f %8.1f\n", ahead, library, own, sent, received);
    }
}

} // namespace

int main(int argc, char** argv) {
    const std::size_t bytes = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 16384;
    if (bytes == 0 || bytes > kMost) {
        std::fprintf(stderr, "copies: %s is no number of bytes from 1 to %zu\n", argv[1], kMost);
        return 2;
    }
    try {
        print(bytes);
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "copies: %s failed\n", problem.what());
        return 1;
    }
    return 0;
}
