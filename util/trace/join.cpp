// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See join.h.
#include "trace/join.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>

namespace dat::trace {
namespace {

struct End {
    std::size_t process, endpoint, connection;
};

using Ends = std::tuple<std::array<std::uint8_t, 16>, std::uint16_t, std::array<std::uint8_t, 16>,
                        std::uint16_t>;

Ends ends_of(const base::TracePeer& peer) {
    return {peer.local, peer.local_port, peer.remote, peer.remote_port};
}
Ends swapped(const Ends& ends) {
    const auto& [local, local_port, remote, remote_port] = ends;
    return {remote, remote_port, local, local_port};
}

bool same_text(const std::array<char, 64>& one, const std::array<char, 64>& other) {
    return std::string_view(one.data()) == std::string_view(other.data());
}

// A loopback address is one of its host alone.
bool is_loopback(const std::array<std::uint8_t, 16>& address) {
    const std::array<std::uint8_t, 13> v4{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127};
    const std::array<std::uint8_t, 16> v6{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    return std::equal(v4.begin(), v4.end(), address.begin()) || address == v6;
}

Connection& connection_at(Model& model, const End& end) {
    return model.processes[end.process].endpoints[end.endpoint].connections[end.connection];
}

bool may_meet(Model& model, const End& one, const End& other) {
    const base::TraceHeader& a = model.processes[one.process].header;
    const base::TraceHeader& b = model.processes[other.process].header;
    return !is_loopback(connection_at(model, one).peer.local) || same_text(a.clock, b.clock) ||
           same_text(a.host, b.host);
}

void pair_up(Model& model, const End& one, const End& other) {
    Connection& a = connection_at(model, one);
    Connection& b = connection_at(model, other);
    a.partner_process = other.process;
    a.partner_endpoint = other.endpoint;
    a.partner = other.connection;
    b.partner_process = one.process;
    b.partner_endpoint = one.endpoint;
    b.partner = one.connection;
}

// The two ends of a connection name the same addresses. Where ports were used again, the latest
// belong together, then those before them.
void join_connections(Model& model) {
    std::map<Ends, std::vector<End>> by_ends;
    for (std::size_t p = 0; p < model.processes.size(); ++p) {
        for (std::size_t e = 0; e < model.processes[p].endpoints.size(); ++e) {
            const auto& connections = model.processes[p].endpoints[e].connections;
            for (std::size_t c = 0; c < connections.size(); ++c) {
                by_ends[ends_of(connections[c].peer)].push_back({p, e, c});
            }
        }
    }
    for (auto& [ends, list] : by_ends) {
        std::ranges::sort(list, {},
                          [&](const End& end) { return connection_at(model, end).time_ns; });
    }
    for (const auto& [ends, list] : by_ends) {
        const auto other = by_ends.find(swapped(ends));
        if (other == by_ends.end() || !(ends < other->first)) {
            continue;
        }
        auto one = list.rbegin();
        auto two = other->second.rbegin();
        for (; one != list.rend() && two != other->second.rend(); ++one, ++two) {
            if (may_meet(model, *one, *two)) {
                pair_up(model, *one, *two);
            }
        }
    }
}

using Key = std::tuple<std::size_t, std::size_t, std::uint32_t, std::uint64_t>;

// The n-th message of one end is the n-th that the other received.
void join_messages(Model& model) {
    std::map<Key, std::size_t> received; // by process, endpoint, attempt, message
    for (std::size_t p = 0; p < model.processes.size(); ++p) {
        for (std::size_t e = 0; e < model.processes[p].endpoints.size(); ++e) {
            const Endpoint& endpoint = model.processes[p].endpoints[e];
            for (std::size_t i = 0; i < endpoint.operations.size(); ++i) {
                const Operation& operation = endpoint.operations[i];
                if (operation.is_receive() && operation.done &&
                    operation.what.message != base::kTraceNoMessage) {
                    received[{p, e, operation.what.attempt, operation.what.message}] = i;
                }
            }
        }
    }
    for (std::size_t p = 0; p < model.processes.size(); ++p) {
        for (std::size_t e = 0; e < model.processes[p].endpoints.size(); ++e) {
            Endpoint& endpoint = model.processes[p].endpoints[e];
            std::map<std::uint32_t, const Connection*> by_attempt;
            for (const Connection& connection : endpoint.connections) {
                by_attempt[connection.attempt] = &connection;
            }
            for (std::size_t i = 0; i < endpoint.operations.size(); ++i) {
                Operation& sent = endpoint.operations[i];
                const auto at = by_attempt.find(sent.what.attempt);
                if (sent.is_receive() || sent.what.message == base::kTraceNoMessage ||
                    at == by_attempt.end() || at->second->partner == kNone) {
                    continue;
                }
                const Connection& c = *at->second;
                Endpoint& peer = model.processes[c.partner_process].endpoints[c.partner_endpoint];
                const auto taken =
                    received.find({c.partner_process, c.partner_endpoint,
                                   peer.connections[c.partner].attempt, sent.what.message});
                if (taken == received.end()) {
                    continue;
                }
                Operation& receive = peer.operations[taken->second];
                sent.partner_process = c.partner_process;
                sent.partner_endpoint = c.partner_endpoint;
                sent.partner = taken->second;
                receive.partner_process = p;
                receive.partner_endpoint = e;
                receive.partner = i;
            }
        }
    }
}

// --- clocks -----------------------------------------------------------------

// What is known of the clock of one process less that of another: whatever arrived was sent
// before.
struct Bounds {
    std::int64_t least = std::numeric_limits<std::int64_t>::min();
    std::int64_t most = std::numeric_limits<std::int64_t>::max();

    bool known() const {
        return least != std::numeric_limits<std::int64_t>::min() &&
               most != std::numeric_limits<std::int64_t>::max();
    }
    bool fits() const { return known() && least <= most; }
    // Sent by the first at `from`, there at the second at `to`.
    void there(std::uint64_t from, std::uint64_t to) {
        most = std::min(most, difference(to, from));
    }
    void back(std::uint64_t from, std::uint64_t to) {
        least = std::max(least, difference(from, to));
    }
};

// Of process `q` less `p`.
Bounds bounds_of(const Model& model, std::size_t p, std::size_t q, bool messages) {
    Bounds bounds;
    for (const Endpoint& endpoint : model.processes[p].endpoints) {
        for (const Connection& mine : endpoint.connections) {
            if (mine.partner_process != q || !mine.clock) {
                continue;
            }
            const Connection& theirs =
                model.processes[q].endpoints[mine.partner_endpoint].connections[mine.partner];
            if (!theirs.clock || theirs.clock->asked == mine.clock->asked) {
                continue;
            }
            if (mine.clock->asked != 0) {
                bounds.there(mine.clock->first_ns, theirs.clock->first_ns);
                bounds.back(theirs.clock->second_ns, mine.clock->second_ns);
            } else {
                bounds.back(theirs.clock->first_ns, mine.clock->first_ns);
                bounds.there(mine.clock->second_ns, theirs.clock->second_ns);
            }
        }
        for (const Operation& operation : endpoint.operations) {
            if (!messages || operation.partner_process != q || !operation.begun) {
                continue;
            }
            const Operation& other = model.processes[q]
                                         .endpoints[operation.partner_endpoint]
                                         .operations[operation.partner];
            if (!operation.is_receive()) {
                bounds.there(operation.begin_ns, other.end_ns);
            } else if (other.begun) {
                bounds.back(other.begin_ns, operation.end_ns);
            }
        }
    }
    return bounds;
}

void measure(Process& to, const Process& from, const Bounds& bounds, bool drifts) {
    const auto least = static_cast<std::uint64_t>(bounds.least);
    const std::uint64_t half = (static_cast<std::uint64_t>(bounds.most) - least) / 2;
    to.offset_ns =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(from.offset_ns) + least + half);
    to.error_ns = from.error_ns + half + 1;
    to.alignment = Alignment::measured;
    to.drifts = drifts;
}

// True: its clock is known now, by `from`.
bool align(Model& model, std::size_t p, std::size_t q) {
    const Process& from = model.processes[p];
    Process& to = model.processes[q];
    if (from.header.clock[0] != '\0' && same_text(from.header.clock, to.header.clock)) {
        to.offset_ns = from.offset_ns;
        to.error_ns = from.error_ns;
        to.alignment = from.error_ns == 0 ? Alignment::same_clock : Alignment::measured;
        return true;
    }
    const Bounds all = bounds_of(model, p, q, true);
    if (all.fits()) {
        measure(to, from, all, false);
        return true;
    }
    const Bounds handshakes = bounds_of(model, p, q, false);
    if (handshakes.fits()) {
        measure(to, from, handshakes, true);
    }
    return handshakes.fits();
}

void join_clocks(Model& model) {
    std::vector<std::size_t> reached{0};
    std::vector<bool> known(model.processes.size(), false);
    known[0] = true;
    for (std::size_t i = 0; i < reached.size(); ++i) {
        for (std::size_t q = 0; q < model.processes.size(); ++q) {
            if (!known[q] && align(model, reached[i], q)) {
                known[q] = true;
                reached.push_back(q);
            }
        }
    }
    const base::TraceHeader& first = model.processes[0].header;
    for (std::size_t q = 0; q < model.processes.size(); ++q) {
        if (!known[q]) {
            const base::TraceHeader& other = model.processes[q].header;
            model.processes[q].offset_ns = difference(
                other.started_ns - first.started_ns, other.started_real_ns - first.started_real_ns);
            model.processes[q].alignment = Alignment::wall_clock;
        }
    }
}

} // namespace

void join(Model& model) {
    join_connections(model);
    join_messages(model);
    join_clocks(model);
}

} // namespace dat::trace
