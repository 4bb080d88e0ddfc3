// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The patterns, over any Side. Both processes call the same function; it tells them
// apart by their role. Each warms up, then both agree on how many operations are
// measured, by what the warm-up took.
#ifndef DAT_UTIL_PERF_PATTERNS_H
#define DAT_UTIL_PERF_PATTERNS_H

#include "case.h"
#include "channel.h"
#include "check_bytes.h"
#include "peer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace dat::perf {

// Pieces of a run of one operation at a time: a moment in which the machine did
// something else moves their median little.
inline constexpr std::uint64_t kPieces = 25;

// How many operations warm up a pattern, at most: until caches and queues are warm.
inline std::uint64_t warm_operations(const Case& what) {
    constexpr std::uint64_t kBytes = 16 << 20;
    const std::uint64_t some = std::clamp<std::uint64_t>(kBytes / (what.size + 4096), 8, 1000);
    return what.amount.operations == 0 ? some : std::min(some, what.amount.operations / 10 + 2);
}

// How many operations are to be measured, at least one, where `warm` of them took so long.
inline std::uint64_t wanted_operations(const Amount& amount, std::uint64_t warm, double warm_s) {
    constexpr double kMost = 50e6;
    const double by_time = amount.seconds * static_cast<double>(warm) / std::max(warm_s, 1e-9);
    return amount.operations > 0 ? amount.operations
                                 : static_cast<std::uint64_t>(std::clamp(by_time, 1.0, kMost));
}

// How many operations are measured, at least one: the client decides, by how long
// `warm` of them took, and the server learns it, when all clients have come so far.
// meanwhile() as in Peer::hear().
template <class Meanwhile>
std::uint64_t agree(Peer& peer, const Amount& amount, std::uint64_t warm, double warm_s,
                    Meanwhile&& meanwhile) {
    if (!peer.client()) {
        const auto told = peer.hear_value<std::uint64_t>(meanwhile);
        return told > 0 ? told : (fail("the client wants no operation"), 0);
    }
    const std::uint64_t agreed = wanted_operations(amount, warm, warm_s);
    peer.meet_crowd(meanwhile);
    peer.tell_value(agreed);
    return agreed;
}

// The processor time that this process has used, all threads.
double processor_seconds();

// Measures what is done while it lives.
class Stopwatch {
  public:
    double seconds() const { return seconds_since(begin_); }
    void stop(Result& result) const {
        result.seconds = seconds();
        result.processor_s = processor_seconds() - processor_;
    }

  private:
    double processor_ = processor_seconds();
    Clock::time_point begin_ = Clock::now();
};

// `operations` in pieces by run(n), which carries out n; the median goes into `result`.
template <class Run> void in_pieces(Result& result, std::uint64_t operations, Run&& run) {
    const std::uint64_t piece = std::max<std::uint64_t>(operations / kPieces, 1);
    std::vector<double> times;
    const Stopwatch watch;
    while (result.operations < operations) {
        const auto from = Clock::now();
        const std::uint64_t n = std::min(piece, operations - result.operations);
        run(n);
        result.operations += n;
        times.push_back(seconds_since(from) / static_cast<double>(n));
    }
    watch.stop(result);
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    result.median_s = *middle;
}

// Operations that are timed one by one, in a run of its own: to read the clock takes time too.
class Singles {
  public:
    static constexpr std::uint64_t kMost = 1'000'000;
    // One more is over.
    void next(Result& result) {
        const auto now = Clock::now();
        result.single.record(static_cast<std::uint64_t>(
            std::chrono::duration_cast<std::chrono::nanoseconds>(now - last_).count()));
        last_ = now;
    }

  private:
    Clock::time_point last_ = Clock::now();
};

// One message back for each that comes, until there were `rounds` in all; `done` counts
// on from call to call. Round N goes over connection N modulo `connections`. There is a receive
// posted ahead, so that the next one is posted while the answer is on its way. The side whose
// message is first says so. after_each() is called behind each round.
template <Side S, class Poll, class After>
void ping_pong(S& side, Done& done, std::uint64_t rounds, bool first, std::size_t connections,
               Poll&& poll, After&& after_each) {
    std::size_t connection = done.sent % connections;
    for (std::uint64_t round = done.sent; round < rounds; ++round) {
        for (int half = 0; half < 2; ++half) {
            const bool sends = (half == 0) == first;
            while (sends ? !side.send(connection) : done.received <= round) {
                poll(connection);
            }
            if (sends) {
                side.receive(connection);
            }
        }
        after_each();
        // The last waits for what it has sent.
        while (round + 1 == rounds && done.sent < rounds) {
            poll(connection);
        }
        connection = connection + 1 == connections ? 0 : connection + 1;
    }
}

// The whole of a measurement one at a time: warmed up, timed in pieces, then one by one.
// poll(connection) adds to `done`.
template <Side S, class Poll>
Result ping_pongs(S& side, Done& done, const Case& what, Peer& peer, std::size_t used,
                  Poll&& poll) {
    for (std::size_t i = 0; i < 2 * used; ++i) {
        side.receive(i / 2);
    }
    const auto until = [&](std::uint64_t rounds, auto&& after_each) {
        ping_pong(side, done, rounds, peer.client(), used, poll, after_each);
    };
    const auto nothing = [] {};
    const std::uint64_t warm = std::max<std::uint64_t>(warm_operations(what), used);
    const std::uint64_t half = (warm + 1) / 2; // the second half tells how long one takes
    until(warm, nothing);
    const Stopwatch warming;
    until(warm + half, nothing);
    const std::uint64_t count = agree(peer, what.amount, half, warming.seconds(), [&] { poll(0); });
    Result result;
    in_pieces(result, count,
              [&](std::uint64_t n) { until(warm + half + result.operations + n, nothing); });
    Singles singles;
    until(warm + half + count + std::min(count, Singles::kMost), [&] { singles.next(result); });
    return result;
}

template <Side S> Result ping(S& side, const Case& what, Peer& peer) {
    Done done;
    const std::size_t used = what.pattern == Pattern::turns ? what.connections : 1;
    return ping_pongs(side, done, what, peer, used,
                      [&](std::size_t connection) { done += side.poll(connection); });
}

// Messages there and back over the first connection, while the client streams large ones over
// the second. Neither side sleeps: there is always something to do.
template <Side S> Result loaded(S& side, const Case& what, Peer& peer) {
    std::array<Done, 2> done;
    std::uint64_t posted = 0;
    std::uint64_t taken = 0;
    bool streams = peer.client();
    const auto poll = [&](std::size_t) {
        side.poll_each(done);
        while (streams && posted - done[1].sent < kBulkDepth && side.send(1)) {
            ++posted;
        }
        for (; taken < done[1].received; ++taken) {
            side.receive(1);
        }
    };
    for (std::size_t i = 0; i < kBulkDepth && !peer.client(); ++i) {
        side.receive(1);
    }
    peer.meet([] {}); // no message comes before its receive
    Result result = ping_pongs(side, done[0], what, peer, 1, poll);
    streams = false;
    std::uint64_t all = posted;
    if (peer.client()) {
        while (done[1].sent < posted) {
            poll(1);
        }
        peer.tell_value(all);
    } else {
        all = peer.hear_value<std::uint64_t>([&] { poll(1); });
    }
    while (!peer.client() && done[1].received < all) {
        poll(1);
    }
    return result;
}

// Posts by post() until `until` operations have completed in all.
template <Side S, class Post>
void complete_many(S& side, Done& done, std::uint64_t until, Post&& post) {
    const std::uint64_t depth = side.depth();
    for (std::uint64_t posted = done.sent; done.sent < until;) {
        while (posted < until && posted - done.sent < depth && post()) {
            ++posted;
        }
        done += side.poll(0);
    }
}

template <Side S> void send_many(S& side, Done& done, std::uint64_t until) {
    complete_many(side, done, until, [&] { return side.send(0); });
}

// Posts another receive for each message that has come: as many stay posted.
template <Side S> void take(S& side, Done& done, const Done& now) {
    for (std::uint64_t i = 0; i < now.received; ++i) {
        side.receive(0);
    }
    done += now;
}

// Receives until `until` messages are received in all.
template <Side S> void receive_many(S& side, Done& done, std::uint64_t until) {
    while (done.received < until) {
        take(side, done, side.poll(0));
    }
}

// One way, ended by a message back when all has arrived.
template <Side S> Result stream(S& side, const Case& what, Peer& peer) {
    const std::uint64_t warm = warm_operations(what);
    Done done;
    const auto meanwhile = [&] { take(side, done, side.look(0)); };
    for (std::size_t i = 0; i < side.depth(); ++i) {
        side.receive(0);
    }
    peer.meet(meanwhile); // no message comes before its receive
    // Up to so many messages in all, with that many answers in all.
    const auto part = [&](std::uint64_t messages, std::uint64_t answers) {
        if (peer.client()) {
            send_many(side, done, messages);
            receive_many(side, done, answers);
        } else {
            receive_many(side, done, messages);
            send_many(side, done, answers);
        }
    };
    const Stopwatch warming;
    part(warm, 1);
    Result result;
    result.operations = agree(peer, what.amount, warm, warming.seconds(), meanwhile);
    const Stopwatch watch;
    part(warm + result.operations, 2);
    watch.stop(result);
    return result;
}

// Both send and receive at once. The client's count is of both directions.
template <Side S> Result both_ways(S& side, const Case& what, Peer& peer) {
    Done done;
    std::uint64_t posted = 0;
    const auto meanwhile = [&] { take(side, done, side.look(0)); };
    // Half of what the queues hold: both directions may share them.
    const std::uint64_t depth = std::max<std::size_t>(side.depth() / 2, 1);
    for (std::size_t i = 0; i < depth; ++i) {
        side.receive(0);
    }
    peer.meet(meanwhile); // no message comes before its receive
    const auto part = [&](std::uint64_t messages) {
        while (done.sent < messages || done.received < messages) {
            while (posted < messages && posted - done.sent < depth && side.send(0)) {
                ++posted;
            }
            take(side, done, side.poll(0));
        }
    };
    const std::uint64_t warm = warm_operations(what);
    const Stopwatch warming;
    part(warm);
    Result result;
    const std::uint64_t count = agree(peer, what.amount, warm, warming.seconds(), meanwhile);
    const Stopwatch watch;
    part(warm + count);
    watch.stop(result);
    result.operations = 2 * count;
    return result;
}

// Several clients stream to one server, which answers each when all of its messages are there.
template <Side S> Result incast_server(S& side, const Case& what, std::span<Peer* const> peers) {
    const std::size_t n = peers.size();
    std::vector<Done> done(n);
    std::vector<std::uint64_t> taken(n);
    const auto poll = [&] {
        side.poll_each(done);
        for (std::size_t i = 0; i < n; ++i) {
            for (; taken[i] < done[i].received; ++taken[i]) {
                side.receive(i);
            }
        }
    };
    const std::size_t depth = std::max<std::size_t>(side.depth() / n, 1);
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t k = 0; k < depth; ++k) {
            side.receive(i);
        }
    }
    for (Peer* peer : peers) {
        peer->meet(poll);
    }
    // Connection i is whichever client's came first, so each has to send as many as another.
    const auto part = [&](std::uint64_t messages, std::uint64_t answers) {
        for (std::size_t i = 0; i < n; ++i) {
            while (done[i].received < messages) {
                poll();
            }
        }
        for (std::size_t i = 0; i < n; ++i) {
            while (!side.send(i)) {
                poll();
            }
        }
        for (std::size_t i = 0; i < n; ++i) {
            while (done[i].sent < answers) {
                poll();
            }
        }
    };
    const std::uint64_t warm = warm_operations(what);
    part(warm, 1);
    std::uint64_t least = ~std::uint64_t{0};
    for (Peer* peer : peers) {
        least = std::min(least, peer->template hear_value<std::uint64_t>(poll));
    }
    Result result;
    const Stopwatch watch;
    for (Peer* peer : peers) {
        peer->tell_value(least);
    }
    part(warm + least, 2);
    watch.stop(result);
    result.operations = least * n;
    return result;
}

template <Side S> Result incast_client(S& side, const Case& what, Peer& peer) {
    Done done;
    const auto meanwhile = [&] { take(side, done, side.look(0)); };
    side.receive(0);
    side.receive(0);
    peer.meet(meanwhile); // all receives are posted
    const std::uint64_t warm = warm_operations(what);
    const Stopwatch warming;
    send_many(side, done, warm);
    receive_many(side, done, 1);
    peer.tell_value(wanted_operations(what.amount, warm, warming.seconds()));
    Result result;
    result.operations = peer.hear_value<std::uint64_t>(meanwhile);
    const Stopwatch watch;
    send_many(side, done, warm + result.operations);
    receive_many(side, done, 2);
    watch.stop(result);
    return result;
}

// The client reaches into the server's memory by post(); the server does what its
// provider needs for that. verify(role) looks at what the warm-up moved.
template <Side S, class Post, class Verify>
Result reach(S& side, const Case& what, Peer& peer, bool one_at_a_time, Post&& post,
             Verify&& verify) {
    Done done;
    Result result;
    const auto meanwhile = [&] { done += side.look(0); };
    side.receive(0);
    peer.tell_value(side.region());
    const auto remote = peer.hear_value<Region>(meanwhile);
    const auto carry_out = [&](std::uint64_t until) {
        if (!one_at_a_time) {
            complete_many(side, done, until, [&] { return post(remote); });
        }
        while (one_at_a_time && done.sent < until) {
            complete_many(side, done, done.sent + 1, [&] { return post(remote); });
        }
    };
    const std::uint64_t warm = warm_operations(what);
    const Stopwatch warming;
    if (peer.client()) {
        carry_out(warm);
    }
    const double warm_s = warming.seconds();
    peer.meet(meanwhile);
    verify(warm);
    peer.meet(meanwhile);
    const std::uint64_t count = agree(peer, what.amount, warm, warm_s, meanwhile);
    if (!peer.client()) {
        const Stopwatch watch;
        receive_many(side, done, 1);
        send_many(side, done, 1);
        watch.stop(result);
        result.operations = count;
        return result;
    }
    const Stopwatch watch;
    if (one_at_a_time) {
        in_pieces(result, count, [&](std::uint64_t n) { carry_out(done.sent + n); });
        Singles singles;
        for (std::uint64_t i = std::min(count, Singles::kMost); i > 0; --i) {
            carry_out(done.sent + 1);
            singles.next(result);
        }
    } else {
        carry_out(warm + count);
        result.operations = count;
    }
    const Done before = done;
    send_many(side, done, before.sent + 1);
    receive_many(side, done, 1); // all of it is where it belongs
    if (!one_at_a_time) {
        watch.stop(result);
    }
    return result;
}

template <Side S> Result rdma(S& side, const Case& what, Peer& peer) {
    const bool writes = what.pattern == Pattern::write;
    fill_bytes(peer.client() ? side.out() : side.in(), what.size, 1);
    return reach(
        side, what, peer, what.pattern == Pattern::read_one,
        [&](const Region& to) { return writes ? side.write(to) : side.read(to); },
        [&](std::uint64_t) {
            if (writes == !peer.client()) {
                check_bytes(side.in(), what.size, 1);
            }
        });
}

template <Side S> Result atomics(S& side, const Case& what, Peer& peer) {
    set_number(side.out(), 1);
    set_number(side.in(), 0);
    return reach(
        side, what, peer, what.pattern == Pattern::atomic_one,
        [&](const Region& to) { return side.add(to); },
        [&](std::uint64_t warm) {
            if (!peer.client()) {
                check_number(side.in(), warm);
            }
        });
}

// The server ends each connection, the client waits for that: so a connection that
// counts has been made and ended on either side.
template <Side S> Result connects(S& side, const Case& what, Peer& peer, const Address& address) {
    const auto make = [&](std::uint64_t count) {
        for (std::uint64_t i = 0; i < count; ++i) {
            side.join(peer.role(), address);
            peer.client() ? side.ended() : side.end();
        }
    };
    const std::uint64_t warm = std::min<std::uint64_t>(10, warm_operations(what));
    const Stopwatch warming;
    make(warm);
    Result result;
    result.operations = agree(peer, what.amount, warm, warming.seconds(), [] {});
    const Stopwatch watch;
    make(result.operations);
    watch.stop(result);
    return result;
}

} // namespace dat::perf

#endif
