// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The canonical form of a world: two worlds with the same one behave alike.
// Connections are numbered anew, sequence numbers count from the oldest
// outstanding operation, times from now, attempts are current or stale.
// May include: core.
#include "sim/world.h"

#include <algorithm>

namespace dat::sim {
namespace {

// A flat record of small numbers.
class Record {
  public:
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

} // namespace

// Writes a world down, part by part.
class Canonical {
  public:
    explicit Canonical(const World& world) : world_(world) {}

    std::string write() {
        const Budget& left = world_.left_;
        record_.add(left.connects, left.posts, left.calls, left.misfortunes);
        record_.add(world_.config_.timed ? world_.latency_us_ : 0);
        for (int host = 0; host < kHosts; ++host) {
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

    void add_stream(const core::DtoStream& stream) {
        record_.add(stream.outstanding());
        for (std::uint64_t seq = stream.first(); seq != stream.next(); ++seq) {
            record_.add(stream.finished(seq));
        }
    }

    void add_host(const World::Host& h) {
        record_.add(h.ep.state(), h.recorded, h.dead, h.silent);
        add_stream(h.ep.requests());
        add_stream(h.ep.receives());
        record_.add(h.consumer.established(), h.consumer.ended(),
                    h.consumer.failed(Direction::request), h.consumer.failed(Direction::receive));
        record_.add(h.listener.kind(), h.listener.listening(), h.requests.size());
        for (const World::PendingRequest& pending : h.requests) {
            record_.add(number(pending.conn), pending.own, pending.request.requester_gone());
        }
    }

    // `from`: the host that sent it.
    void add_message(const Message& message, int from) {
        const int poster = message.kind == MessageKind::ack ? other(from) : from;
        const bool counted = message.kind >= MessageKind::send && message.kind <= MessageKind::ack;
        const std::uint64_t first = world_.host_(poster).ep.requests().first();
        record_.add(message.kind, counted ? message.seq - first : 0, when(message.due_us));
    }

    void add_conn(const Conn& conn) {
        record_.add(conn.initiator, conn.lost);
        for (int host = 0; host < kHosts; ++host) {
            const Side& side = conn.side[static_cast<std::size_t>(host)];
            const Side& peer = conn.side[static_cast<std::size_t>(other(host))];
            record_.add(side.open, side.bound, current(host, side.attempt), side.peer_closed,
                        side.drained, side.told_end, side.unacked);
            record_.add(side.accepted, side.rejected, side.asked_end, side.up);
            record_.add(peer.recvs_done - side.sends_done, side.staged.size());
            for (const Message& message : side.staged) {
                add_message(message, other(host));
            }
            for (const Lane& lane : conn.lane[static_cast<std::size_t>(host)]) {
                record_.add(lane.size());
                for (const Message& message : lane) {
                    add_message(message, host);
                }
            }
        }
    }

    void add_timers() { // their order means nothing
        std::vector<Record> timers;
        for (const Timer& timer : world_.timers_) {
            Record one;
            one.add(timer.kind, timer.host, number(timer.conn), current(timer.host, timer.attempt),
                    when(timer.due_us));
            timers.push_back(one);
        }
        std::sort(timers.begin(), timers.end());
        record_.add(timers.size());
        for (const Record& timer : timers) {
            record_.append(timer);
        }
    }

    const World& world_;
    Record record_;
};

std::string World::canonical() const { return Canonical(*this).write(); }

std::uint64_t World::hash() const {
    std::uint64_t hash = 0xcbf29ce484222325; // FNV-1a
    for (const char c : canonical()) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
    return hash;
}

} // namespace dat::sim
