// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The canonical form of a world: two worlds with the same one behave alike.
// Connections are numbered anew, sequence numbers count from the oldest
// outstanding operation, times from now, attempts are current or stale.
#include "sim/world.h"

#include <algorithm>
#include <utility>

namespace dat::sim {
// Writes a world down, part by part.
class Canonical {
  public:
    Canonical(const World& world, int first) : world_(world), order_{first, other(first)} {}

    // The host to begin with, so that a world and its mirror image are written
    // down alike; -1 where the hosts do not tell.
    int leader() {
        add_host(world_.host_(0));
        const std::string first = std::exchange(record_, Record{}).bytes();
        add_host(world_.host_(1));
        const int order = first.compare(record_.bytes());
        return order == 0 ? -1 : order < 0 ? 0 : 1;
    }

    std::string write() {
        record_.reserve(480); // enough for most worlds
        add_budget(world_.left_);
        record_.add(world_.config_.timed ? world_.latency_us_ : 0);
        for (const int host : order_) {
            add_host(world_.host_(host));
        }
        record_.add(world_.conns_.size());
        for (const Conn& conn : world_.conns_) {
            add_conn(conn);
        }
        add_timers();
        return record_.bytes();
    }

  private:
    std::int64_t number(std::uint32_t id) const {
        const std::vector<Conn>& conns = world_.conns_;
        const auto it =
            std::find_if(conns.begin(), conns.end(), [id](const Conn& c) { return c.id == id; });
        return it == conns.end() ? -1 : it - conns.begin();
    }
    bool current(int host, core::Attempt attempt) const {
        return attempt == world_.host_(host).ep.attempt();
    }
    std::int64_t when(std::int64_t due_us) const {
        return world_.config_.timed ? due_us - world_.now_us_ : 0;
    }

    void add_budget(const Budget& left) {
        const auto a = static_cast<std::size_t>(order_[0]);
        const auto b = static_cast<std::size_t>(order_[1]);
        for (const std::uint32_t n :
             {left.connects, left.requests[a], left.requests[b], left.receives[a], left.receives[b],
              left.calls, left.misfortunes}) {
            record_.add(n == Budget::kUnlimited ? -1 : static_cast<std::int64_t>(n));
        }
    }

    void add_stream(const core::DtoStream& stream) {
        record_.add(stream.outstanding(), stream.failed());
        for (std::uint64_t seq = stream.first(); seq != stream.next(); ++seq) {
            record_.add(stream.finished(seq) ? static_cast<int>(stream.status(seq)) : -1);
        }
    }

    void add_consumer(const Consumer& consumer) {
        record_.add(consumer.trying(), consumer.established(), consumer.ended(), consumer.freed());
        for (const Direction direction : {Direction::request, Direction::receive}) {
            record_.add(consumer.outstanding(direction), consumer.failed(direction));
        }
    }

    void add_host(const World::Host& h) {
        record_.add(h.ep.state(), h.ep.recorded(), h.dead, h.dead && h.silent);
        add_stream(h.ep.requests());
        add_stream(h.ep.receives());
        add_consumer(h.consumer);
        record_.add(h.listener.kind(), h.listener.listening(), h.requests.size());
        for (const World::PendingRequest& pending : h.requests) {
            record_.add(number(pending.conn), pending.own, pending.request.requester_gone());
        }
    }

    // `from`: the host that sent it. Of what was posted for an attempt that is over,
    // the number means nothing any more (EP-67).
    void add_message(const Message& message, const Conn& conn, int from) {
        const int poster = message.kind == MessageKind::ack ? other(from) : from;
        const bool counted = message.kind >= MessageKind::send && message.kind <= MessageKind::ack;
        const bool matters = counted && world_.in_use(conn, poster);
        const std::uint64_t first = world_.host_(poster).ep.requests().first();
        record_.add(message.kind, matters ? message.seq - first : 0, when(message.due_us));
    }

    // Of an end that nothing can change any more, what was done counts only as
    // far as the other end is held against it.
    void add_side(const Conn& conn, int host) {
        const Side& side = conn.side[static_cast<std::size_t>(host)];
        const Side& peer = conn.side[static_cast<std::size_t>(other(host))];
        const bool live = world_.in_use(conn, host) || world_.request_in_flight(conn);
        record_.add(live);
        if (live) {
            record_.add(side.open, side.bound, side.bound && current(host, side.attempt),
                        side.peer_closed, side.told_end, side.unacked, side.asked_end,
                        side.staged.size());
            for (const Message& message : side.staged) {
                add_message(message, conn, other(host));
            }
        }
        if (live || world_.in_use(conn, other(host))) {
            record_.add(side.accepted, side.rejected, side.up, side.drained,
                        peer.recvs_done - side.sends_done);
        }
    }

    void add_conn(const Conn& conn) {
        record_.add(conn.initiator == order_[0], conn.lost);
        for (const int host : order_) {
            add_side(conn, host);
            for (const Lane& lane : conn.lane[static_cast<std::size_t>(host)]) {
                record_.add(lane.size());
                for (const Message& message : lane) {
                    add_message(message, conn, host);
                }
            }
        }
    }

    void add_timers() { // their order means nothing
        std::vector<Record> timers;
        for (const Timer& timer : world_.timers_) {
            Record one;
            one.add(timer.kind, timer.host == order_[0], number(timer.conn),
                    current(timer.host, timer.attempt), when(timer.due_us));
            timers.push_back(one);
        }
        std::sort(timers.begin(), timers.end());
        record_.add(timers.size());
        for (const Record& timer : timers) {
            record_.append(timer);
        }
    }

    const World& world_;
    const std::array<int, kHosts> order_;
    Record record_;
};

std::string World::canonical(int first) const { return Canonical(*this, first).write(); }

// Two lanes, each eight bytes at a time: multiply, fold the upper half down.
Key World::key(int first) const { return key_of(canonical(first)); }

Key World::mirrored_key() const {
    if (const int leader = Canonical(*this, 0).leader(); leader >= 0) {
        return key(leader);
    }
    const Key a = key(0), b = key(1);
    return std::pair(a.high, a.low) < std::pair(b.high, b.low) ? a : b;
}

} // namespace dat::sim
