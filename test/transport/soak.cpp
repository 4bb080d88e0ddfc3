// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Connections made and ended by the thousand: nothing may be left of them. Memory that
// is allocated, memory that is resident and open descriptors are as they were after a
// first part of the run. A plain program.
//
//   soak                ROUNDS 2,000, CONNECTIONS 20,000, over each transport
//   soak ROUNDS CONNECTIONS
//     so many connections of one endpoint, which is reset after each; so many with
//     endpoints that are opened for each and closed
//
// Under a sanitizer there are fewer, and memory is not compared: a sanitizer keeps
// what is freed for a while. What leaks it finds itself.
#include "plain.h"
#include "sanitized.h"
#include "usage.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace dat::test {

namespace {

constexpr int kRounds = kSanitized ? 300 : 2000;
constexpr int kConnections = kSanitized ? 2000 : 20'000;

// ---- what must not grow --------------------------------------------------

// Sockets of what has just ended live on until the peer's end has been read.
Usage settled_usage(std::size_t descriptors) {
    wait_until([&] { return open_descriptors() <= descriptors; });
    return usage();
}

// `since`: how many of the connections were made after `before`.
void require_no_growth(const char* what, int count, int since, const Usage& before,
                       const Usage& after) {
    // The least that malloc() counts is 32 bytes: less than one piece for each connection.
    const std::size_t allowed = static_cast<std::size_t>(std::max(since, 1000)) * 16;
    constexpr std::size_t kResident = 2 * 1024 * 1024;
    std::printf("%s: %d connections: allocated %zu -> %zu, resident %zu -> %zu KiB, "
                "descriptors %zu -> %zu%s\n",
                what, count, before.allocated, after.allocated, before.resident / 1024,
                after.resident / 1024, before.descriptors, after.descriptors,
                kSanitized ? " (sanitized: fewer, memory not compared)" : "");
    std::fflush(stdout);
    DAT_REQUIRE(after.descriptors <= before.descriptors, "descriptors were left open");
    DAT_REQUIRE(kSanitized || after.allocated <= before.allocated + allowed, "memory leaks");
    DAT_REQUIRE(kSanitized || after.resident <= before.resident + kResident, "memory grows");
}

// ---- operations ----------------------------------------------------------

// One operation that is used again and again: the fixture would keep each.
class Slot {
  public:
    void send(const Endpoint& ep, const Bytes& data) {
        post([&] { return fi_send(ep.get(), data.data(), data.size(), nullptr, 0, &op_); });
    }
    void recv(const Endpoint& ep, Bytes& into) {
        post([&] { return fi_recv(ep.get(), into.data(), into.size(), nullptr, 0, &op_); });
    }
    void write(const Endpoint& ep, const Bytes& data, Remote to) {
        post([&] {
            return fi_write(ep.get(), data.data(), data.size(), nullptr, 0, to.address, to.key,
                            &op_);
        });
    }
    void read(const Endpoint& ep, Bytes& into, Remote from) {
        post([&] {
            return fi_read(ep.get(), into.data(), into.size(), nullptr, 0, from.address, from.key,
                           &op_);
        });
    }
    void finish() {
        wait_op(op_);
        DAT_REQUIRE(op_.ok(), error_name(op_.err));
    }
    void finish_flushed() {
        wait_op(op_);
        DAT_REQUIRE(op_.flushed(), error_name(op_.err));
    }

  private:
    template <class Call> void post(Call call) {
        op_ = Op();
        DAT_MUST(post_when_possible(call));
    }
    Op op_;
};

// ---- one endpoint, again and again ---------------------------------------

class Pairing {
  public:
    explicit Pairing(const Transport& transport)
        : near_(transport), far_(transport), active_(near_), passive_(far_),
          region_(far_, kLarge, FI_REMOTE_READ | FI_REMOTE_WRITE) {
        far_.listen();
    }

    void round(int number) {
        connect();
        transfer(number % 16 == 0 ? kLarge : kSmall);
        end(number);
        DAT_MUST(active_.reset());
        DAT_MUST(passive_.reset());
    }

  private:
    static constexpr std::size_t kSmall = 64;
    static constexpr std::size_t kLarge = 200'000;

    void connect() {
        DAT_MUST(active_.connect(far_, pattern(40)));
        const Event request = wait_event(far_, FI_CONNREQ);
        DAT_MUST(passive_.dat()->take_request(passive_.get(), request.info->handle));
        DAT_MUST(passive_.accept(pattern(30)));
        wait_event(near_, FI_CONNECTED);
        wait_event(far_, FI_CONNECTED);
    }

    void transfer(std::size_t size) {
        out_.resize(size, 7);
        in_.resize(size);
        Slot slots[4];
        slots[0].recv(passive_, in_);
        slots[1].send(active_, out_);
        slots[2].write(active_, out_, region_.at(0));
        slots[3].read(active_, back_, region_.at(0));
        for (Slot& slot : slots)
            slot.finish();
    }

    // In turn: either side, graceful or abrupt, with something outstanding or not.
    void end(int number) {
        Slot left[2];
        left[0].recv(active_, in_);
        left[1].recv(passive_, in_);
        const Endpoint& first = (number & 1) != 0 ? active_ : passive_;
        DAT_MUST(first.disconnect((number & 2) != 0 ? FI_DAT_GRACEFUL : FI_DAT_ABRUPT));
        wait_shutdown(active_);
        wait_shutdown(passive_);
        for (Slot& slot : left)
            slot.finish_flushed();
    }

    Side near_;
    Side far_;
    Endpoint active_;
    Endpoint passive_;
    Region region_;
    Bytes out_;
    Bytes in_;
    Bytes back_ = Bytes(kSmall);
};

void one_endpoint(const Transport& transport, int rounds) {
    Pairing pairing(transport);
    const int first = rounds / 5;
    pairing.round(0);
    settle();
    const std::size_t descriptors = open_descriptors();
    for (int i = 1; i < first; ++i)
        pairing.round(i);
    const Usage before = settled_usage(descriptors);
    for (int i = first; i < rounds; ++i)
        pairing.round(i);
    require_no_growth((std::string(transport.name) + ", one endpoint").c_str(), rounds,
                      rounds - first, before, settled_usage(before.descriptors));
}

// ---- many endpoints, some at a time --------------------------------------

class Crowd {
  public:
    explicit Crowd(const Transport& transport) : near_(transport), far_(transport) {
        far_.listen();
    }
    static constexpr std::size_t kAtOnce = 40;

    void batch(int number) {
        std::vector<Endpoint> active;
        std::vector<Endpoint> passive;
        for (std::size_t i = 0; i < kAtOnce; ++i) {
            active.emplace_back(near_);
            DAT_MUST(active.back().connect(far_));
        }
        for (std::size_t i = 0; i < kAtOnce; ++i) {
            passive.emplace_back(far_, wait_event(far_, FI_CONNREQ));
            receives_[i].recv(passive.back(), in_[i]);
            DAT_MUST(passive.back().accept());
        }
        for (std::size_t i = 0; i < kAtOnce; ++i) {
            wait_event(near_, FI_CONNECTED);
            wait_event(far_, FI_CONNECTED);
        }
        for (std::size_t i = 0; i < kAtOnce; ++i)
            sends_[i].send(active[i], out_);
        for (std::size_t i = 0; i < kAtOnce; ++i) {
            sends_[i].finish();
            receives_[i].finish();
        }
        end((number & 1) != 0 ? active : passive, (number & 1) != 0 ? passive : active,
            (number & 2) != 0);
    }

  private:
    // The others see their end, or are closed at once.
    void end(std::vector<Endpoint>& first, std::vector<Endpoint>& others, bool wait) {
        for (Endpoint& endpoint : first)
            DAT_MUST(endpoint.close());
        for (std::size_t i = 0; wait && i < others.size(); ++i)
            wait_event(others.front().side(), FI_SHUTDOWN);
        for (Endpoint& endpoint : others)
            DAT_MUST(endpoint.close());
        pump_all();
        near_.events().clear();
        far_.events().clear();
    }

    Side near_;
    Side far_;
    Slot sends_[kAtOnce];
    Slot receives_[kAtOnce];
    Bytes out_ = Bytes(100, 3);
    std::vector<Bytes> in_ = std::vector<Bytes>(kAtOnce, Bytes(100));
};

void many_endpoints(const Transport& transport, int connections) {
    Crowd crowd(transport);
    crowd.batch(0);
    settle();
    const std::size_t descriptors = open_descriptors();
    constexpr int kAtOnce = Crowd::kAtOnce;
    const int batches = std::max(connections / kAtOnce, 10);
    const int first = batches / 5;
    for (int i = 1; i < first; ++i)
        crowd.batch(i);
    const Usage before = settled_usage(descriptors);
    for (int i = first; i < batches; ++i)
        crowd.batch(i);
    require_no_growth((std::string(transport.name) + ", an endpoint each").c_str(),
                      batches * kAtOnce, (batches - first) * kAtOnce, before,
                      settled_usage(before.descriptors));
}

} // namespace
} // namespace dat::test

int main(int argc, char** argv) {
    using namespace dat::test;
    if (argc != 1 && argc != 3) {
        std::fprintf(stderr, "usage: soak [ROUNDS CONNECTIONS]\n");
        return 2;
    }
    static const int rounds = argc == 3 ? std::atoi(argv[1]) : kRounds;
    static const int connections = argc == 3 ? std::atoi(argv[2]) : kConnections;
    return run_over_all([](const Transport& transport) {
        one_endpoint(transport, rounds);
        many_endpoints(transport, connections);
    });
}
