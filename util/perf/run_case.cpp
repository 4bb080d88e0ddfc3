// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See run_case.h. May include: util/perf, std, libfabric.
#include "run_case.h"

#include "check_bytes.h"
#include "fabric_side.h"
#include "memory_floor.h"
#include "patterns.h"
#include "raw_side.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <sys/resource.h>

namespace dat::perf {

const char* name(Pattern pattern) {
    constexpr const char* kNames[] = {"ping",     "turns",  "stream",     "write",   "read",
                                      "read_one", "atomic", "atomic_one", "connect", "copy"};
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
    case Pattern::stream:
    case Pattern::connect:
    case Pattern::copy:
        break;
    }
    return FI_MSG;
}

int limit_s(const Case& what) {
    return kPatience_s + 20 * static_cast<int>(what.amount.seconds + 1) +
           static_cast<int>(what.connections / 100);
}

namespace {

template <Side S>
Result run_pattern(S& side, const Case& what, Peer& peer, const Address& address) {
    switch (what.pattern) {
    case Pattern::ping:
    case Pattern::turns:
        return ping(side, what, peer);
    case Pattern::stream:
        return stream(side, what, peer);
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

// Both tell the other how they are reached, and data can flow when this returns.
template <Side S> Result run_side(S& side, const Case& what, Peer& peer) {
    const Address mine = side.open(peer.role());
    peer.tell(mine.empty() ? "none" : mine);
    const Address theirs = peer.hear();
    if (what.pattern == Pattern::connect) {
        return run_pattern(side, what, peer, theirs);
    }
    for (std::size_t i = 0; i < what.connections; ++i) {
        side.join(peer.role(), theirs);
    }
    const Result result = run_pattern(side, what, peer, theirs);
    // Neither goes while the other may still need its answers, nor while it still looks
    // at its queue, which then would tell it of receives that nobody uses any more.
    peer.meet([&] { side.look(0); });
    peer.meet([] {});
    return result;
}

bool messages(Pattern pattern) {
    return pattern == Pattern::ping || pattern == Pattern::turns || pattern == Pattern::stream;
}

Result run_fabric(const Case& what, Peer& peer) {
    set_environment(what.way);
    FabricOptions options;
    options.size = what.size;
    options.caps = caps_of(what.pattern);
    options.waits = what.waits;
    options.address = what.address;
    FabricSide side(what.way, options);
    if (what.connections > 1 && !side.connected()) {
        throw NotOffered("FI_EP_RDM endpoints have no connections");
    }
    if (messages(what.pattern)) {
        fill_bytes(side.out(), what.size, peer.client() ? 1 : 2);
    }
    Result result = run_side(side, what, peer);
    if (messages(what.pattern)) {
        check_bytes(side.in(), what.size, peer.client() ? 2 : 1);
    }
    const std::string chosen = side.what();
    std::memcpy(result.what, chosen.data(), std::min(chosen.size(), sizeof result.what - 1));
    return result;
}

Result run_role(const Case& what, Peer& peer, const SharedMemory* shared) {
    Result result;
    switch (what.way.kind) {
    case Kind::fabric:
        result = run_fabric(what, peer);
        break;
    case Kind::socket: {
        RawSide side(what.size, what.waits);
        result = run_side(side, what, peer);
        break;
    }
    case Kind::memory:
        result = memory_floor(what, peer, *shared);
        break;
    }
    result.pinned = pinned();
    return result;
}

} // namespace

CaseOutcome run_case(const Case& what) {
    std::unique_ptr<SharedMemory> shared;
    if (what.way.kind == Kind::memory) {
        shared = std::make_unique<SharedMemory>(shared_size(what));
    }
    const Outcome outcome = run_pair(
        [&](Peer& peer) { return as_bytes(run_role(what, peer, shared.get())); }, limit_s(what));
    CaseOutcome all{outcome.ending, outcome.why, {}, {}};
    if (outcome.ending == Ending::right) {
        all.server = from_bytes<Result>(outcome.server);
        all.client = from_bytes<Result>(outcome.client);
    }
    return all;
}

} // namespace dat::perf
