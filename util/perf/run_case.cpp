// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See run_case.h.
#include "run_case.h"

#include "check_bytes.h"
#include "fabric_side.h"
#include "foreign.h"
#include "memory_floor.h"
#include "patterns.h"
#include "raw_side.h"
#include "remote.h"
#include "statistics.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <sys/resource.h>
#include <thread>

namespace dat::perf {

const char* name(Pattern pattern) {
    constexpr const char* kNames[] = {"ping",       "turns",   "loaded", "stream",   "both",
                                      "incast",     "write",   "read",   "read_one", "atomic",
                                      "atomic_one", "connect", "copy"};
    return kNames[static_cast<int>(pattern)];
}

double processor_seconds() {
    rusage use{};
    ::getrusage(RUSAGE_SELF, &use);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
    };
    return seconds(use.ru_utime) + seconds(use.ru_stime);
}

std::uint64_t caps_of(Pattern pattern) {
    switch (pattern) {
    case Pattern::write:
    case Pattern::read:
    case Pattern::read_one:
        return FI_MSG | FI_RMA;
    case Pattern::atomic:
    case Pattern::atomic_one:
        return FI_MSG | FI_ATOMIC;
    case Pattern::ping:
    case Pattern::turns:
    case Pattern::loaded:
    case Pattern::stream:
    case Pattern::both:
    case Pattern::incast:
    case Pattern::connect:
    case Pattern::copy:
        break;
    }
    return FI_MSG;
}

std::size_t link_count(const Case& what) {
    return what.pattern == Pattern::incast ? what.senders : what.pairs * what.threads;
}

Result together(std::span<const Result> all) {
    Result sum;
    std::vector<double> medians;
    for (const Result& one : all) {
        sum.operations += one.operations;
        sum.seconds = std::max(sum.seconds, one.seconds);
        sum.processor_s += one.processor_s;
        sum.single.add(one.single);
        medians.push_back(one.median_s);
    }
    if (!all.empty()) {
        sum.median_s = median(medians);
        sum.pinned = std::ranges::all_of(all, [](const Result& one) { return one.pinned; });
        std::memcpy(sum.what, all.front().what, sizeof sum.what);
    }
    return sum;
}

int limit_s(const Case& what) {
    // Where more processes and threads than processors poll, each waits for its turn.
    const std::size_t many = std::max({what.pairs * what.threads, what.senders, std::size_t{1}});
    return kPatience_s + static_cast<int>(19 + many) * static_cast<int>(what.amount.seconds + 1) +
           static_cast<int>(what.connections / 100);
}

namespace {

template <Side S>
Result run_pattern(S& side, const Case& what, Peer& peer, const Address& address) {
    switch (what.pattern) {
    case Pattern::ping:
    case Pattern::turns:
        return ping(side, what, peer);
    case Pattern::loaded:
        return loaded(side, what, peer);
    case Pattern::stream:
        return stream(side, what, peer);
    case Pattern::both:
        return both_ways(side, what, peer);
    case Pattern::incast: // the client; incast_server() is not of a pair
        return incast_client(side, what, peer);
    case Pattern::write:
    case Pattern::read:
    case Pattern::read_one:
        return rdma(side, what, peer);
    case Pattern::atomic:
    case Pattern::atomic_one:
        return atomics(side, what, peer);
    case Pattern::connect:
        return connects(side, what, peer, address);
    case Pattern::copy:
        break;
    }
    throw NotOffered("no such pattern");
}

// All tell the other how they are reached, and data can flow when this returns. A server may have
// several peers.
template <Side S> Result run_side(S& side, const Case& what, std::span<Peer* const> peers) {
    const Role role = peers[0]->role();
    const Address mine = side.open(role);
    std::vector<Address> theirs;
    for (Peer* peer : peers) {
        peer->tell(mine.empty() ? "none" : mine);
    }
    for (Peer* peer : peers) {
        theirs.push_back(peer->hear());
    }
    if (what.pattern == Pattern::connect) {
        return run_pattern(side, what, *peers[0], theirs[0]);
    }
    const std::size_t connections = what.pattern == Pattern::incast ? 1
                                    : what.pattern == Pattern::loaded
                                        ? std::max<std::size_t>(what.connections, 2)
                                        : what.connections;
    for (const Address& one : theirs) {
        for (std::size_t i = 0; i < connections; ++i) {
            side.join(role, one);
        }
    }
    Result result;
    if (what.pattern == Pattern::incast && role == Role::server) {
        result = incast_server(side, what, peers);
    } else {
        result = run_pattern(side, what, *peers[0], theirs[0]);
    }
    // Neither goes while another may still need its answers, nor while it still looks
    // at its queue, which then would tell it of receives that nobody uses any more.
    for (Peer* peer : peers) {
        peer->tell("here");
    }
    for (Peer* peer : peers) {
        peer->hear([&] { side.look(0); });
    }
    for (Peer* peer : peers) {
        peer->meet([] {});
    }
    return result;
}

// Whose bytes are looked at when all is over.
bool messages(Pattern pattern) {
    return pattern == Pattern::ping || pattern == Pattern::turns || pattern == Pattern::loaded ||
           pattern == Pattern::stream || pattern == Pattern::both || pattern == Pattern::incast;
}

FabricOptions options_of(const Case& what, std::size_t peers) {
    FabricOptions options;
    options.size = what.size;
    options.caps = caps_of(what.pattern);
    options.waits = what.waits;
    options.address = what.address;
    options.told_apart = what.pattern == Pattern::loaded ? 2 : peers;
    options.bulk = what.pattern == Pattern::loaded ? kBulkSize : 0;
    return options;
}

Result run_fabric(const Case& what, std::span<Peer* const> peers,
                  std::shared_ptr<FabricDomain> domain) {
    FabricOptions options = options_of(what, peers.size());
    options.domain = std::move(domain);
    FabricSide side(what.way, options);
    const bool several =
        what.connections > 1 || what.pattern == Pattern::loaded || what.pattern == Pattern::incast;
    if (several && !side.connected()) {
        throw NotOffered("FI_EP_RDM endpoints have no connections");
    }
    const bool client = peers[0]->client();
    if (messages(what.pattern)) {
        fill_bytes(side.out(), what.size, client ? 1 : 2);
    }
    Result result = run_side(side, what, peers);
    if (messages(what.pattern)) {
        check_bytes(side.in(), what.size, client ? 2 : 1);
    }
    const std::string chosen = side.what();
    std::memcpy(result.what, chosen.data(), std::min(chosen.size(), sizeof result.what - 1));
    return result;
}

// What the processes of a case have in common, from before they were made.
struct Shared {
    explicit Shared(const Case& what)
        : memory(what.way.kind == Kind::memory ? shared_size(what) : sizeof(Crowd)),
          crowd(what.way.kind == Kind::memory ? nullptr : new (memory.data()) Crowd{}) {}
    SharedMemory memory;
    Crowd* crowd;
};

Result run_one(const Case& what, std::span<Peer* const> peers, const Shared* shared,
               std::shared_ptr<FabricDomain> domain) {
    switch (what.way.kind) {
    case Kind::fabric:
        return run_fabric(what, peers, std::move(domain));
    case Kind::socket: {
        RawSide side(what.size, what.waits, what.address,
                     what.pattern == Pattern::loaded ? kBulkSize : 0);
        return run_side(side, what, peers);
    }
    case Kind::memory:
        return memory_floor(what, *peers[0], shared->memory);
    case Kind::ucx:
        return run_ucx(what, *peers[0]);
    case Kind::mpi:
        break; // has no sides: see run_mpi()
    }
    throw NotOffered("no such way");
}

// Threads that measure, as they outlive the function that waits for them where one fails: then
// this process ends.
struct Crew {
    std::vector<Peer> peers;
    std::vector<Result> results;
    std::vector<std::thread> threads;
    std::mutex mutex;
    std::condition_variable changed;
    std::size_t running = 0;
    std::exception_ptr trouble;
};

Result run_threads(const Case& what, std::vector<Peer>& peers, const Shared* shared) {
    auto& crew = *new Crew; // threads may be there until the process ends
    crew.peers = std::move(peers);
    crew.running = crew.peers.size();
    crew.results.resize(crew.running);
    const std::shared_ptr<FabricDomain> domain =
        what.way.kind == Kind::fabric ? open_domain(what.way, options_of(what, 1), true) : nullptr;
    const bool client = crew.peers[0].client();
    for (std::size_t i = 0; i < crew.results.size(); ++i) {
        crew.threads.emplace_back([&crew, i, what, shared, domain, client] {
            std::exception_ptr trouble;
            try {
                Peer* const one = &crew.peers[i];
                const bool alone = pin_to(2 * i + (client ? 1 : 0), 2 * crew.results.size());
                crew.results[i] = run_one(what, {&one, 1}, shared, domain);
                crew.results[i].pinned = alone;
            } catch (...) {
                trouble = std::current_exception();
            }
            const std::lock_guard lock(crew.mutex);
            --crew.running;
            crew.trouble = crew.trouble ? crew.trouble : trouble;
            crew.changed.notify_all();
        });
    }
    std::unique_lock lock(crew.mutex);
    crew.changed.wait(lock, [&] { return crew.running == 0 || crew.trouble; });
    if (crew.trouble) {
        for (std::thread& thread : crew.threads) {
            thread.detach();
        }
        std::rethrow_exception(crew.trouble);
    }
    lock.unlock();
    for (std::thread& thread : crew.threads) {
        thread.join();
    }
    Result all = together(crew.results);
    // Each has counted the processor time of the whole process.
    all.processor_s = std::ranges::max(crew.results, {}, &Result::processor_s).processor_s;
    return all;
}

std::string run_member(const Case& what, std::vector<Peer>& peers, const Shared* shared) {
    if (what.way.kind == Kind::fabric) {
        set_environment(what.way);
    }
    if (link_count(what) > 1 && what.pattern != Pattern::incast) {
        for (Peer& peer : peers) {
            peer.join_crowd(peer.client() && shared ? shared->crowd : nullptr, link_count(what));
        }
    }
    Result result;
    if (what.threads > 1) {
        result = run_threads(what, peers, shared);
    } else {
        std::vector<Peer*> all;
        all.reserve(peers.size());
        for (Peer& peer : peers) {
            all.push_back(&peer);
        }
        result = run_one(what, all, shared, nullptr);
        result.pinned = pinned();
    }
    return as_bytes(result);
}

std::string numbered(const char* name, std::size_t number, std::size_t count) {
    return count == 1 ? name : name + (" " + std::to_string(number + 1));
}

// The processes of one role, which get the links in their order. `seats`: how many processors they
// need, with those of the other role where that is here as well; 0: each thread has one.
std::vector<Member> members_of(const Case& what, Role role, std::vector<Fd>& links, bool both) {
    const bool incast = what.pattern == Pattern::incast;
    const bool one = incast && role == Role::server;
    const std::size_t count = one ? 1 : incast ? what.senders : what.pairs;
    const std::size_t others = !both ? 0 : !incast ? what.pairs : one ? what.senders : 1;
    std::vector<Member> members(count);
    for (std::size_t i = 0; i < count; ++i) {
        Member& member = members[i];
        member.role = role;
        member.name = numbered(role == Role::server ? "server" : "client", i, count);
        member.seats = what.threads > 1 ? 0 : count + others;
        member.seat = !both    ? i
                      : incast ? i + (one ? 0 : 1)
                               : 2 * i + (role == Role::server ? 0 : 1);
    }
    for (std::size_t i = 0; i < links.size(); ++i) {
        members[one ? 0 : incast ? i : i / what.threads].peers.push_back(std::move(links[i]));
    }
    return members;
}

Result sum_of(std::span<const std::string> said) {
    std::vector<Result> all;
    for (const std::string& one : said) {
        all.push_back(from_bytes<Result>(one));
    }
    return together(all);
}

} // namespace

Outcome run_servers(const Case& what, std::vector<Fd> links) {
    return run_members(
        members_of(what, Role::server, links, false),
        [&](const Member&, std::vector<Peer>& peers) { return run_member(what, peers, nullptr); },
        limit_s(what));
}

CaseOutcome run_case(const Case& what, Remote* remote) {
    if (what.way.kind == Kind::mpi) {
        return run_mpi(what, remote != nullptr);
    }
    const Shared shared(what);
    const auto side = [&](const Member&, std::vector<Peer>& peers) {
        return run_member(what, peers, &shared);
    };
    CaseOutcome all;
    if (remote) {
        std::vector<Fd> links = remote->begin(what);
        const Outcome here =
            run_members(members_of(what, Role::client, links, false), side, limit_s(what));
        const Outcome there = remote->end(limit_s(what));
        const Outcome& most = worse(here, there);
        all.ending = most.ending;
        all.why = most.why;
        if (all.ending == Ending::right) {
            all.server = sum_of(there.said);
            all.client = sum_of(here.said);
        }
        return all;
    }
    std::vector<Fd> ends[2];
    for (std::size_t i = 0; i < link_count(what); ++i) {
        auto [server, client] = make_link();
        ends[0].push_back(std::move(server));
        ends[1].push_back(std::move(client));
    }
    std::vector<Member> members = members_of(what, Role::server, ends[0], true);
    const std::size_t servers = members.size();
    for (Member& client : members_of(what, Role::client, ends[1], true)) {
        members.push_back(std::move(client));
    }
    const Outcome outcome = run_members(std::move(members), side, limit_s(what));
    all.ending = outcome.ending;
    all.why = outcome.why;
    if (outcome.ending == Ending::right) {
        const std::span<const std::string> said = outcome.said;
        all.server = sum_of(said.first(servers));
        all.client = sum_of(said.subspan(servers));
    }
    return all;
}

} // namespace dat::perf
