// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Two hosts with one core::Endpoint each, joined by a simulated network. The
// world is a plain value: it can be copied, hashed and compared, and changes
// only by step(action) with one of enabled_actions(). So a seeded random driver
// and a breadth-first search can drive the same world. No wall clock, no
// randomness, no global state.
//
// Between the core and the network stands a domain layer (domain.cpp, arrivals.cpp). It
// does what prov/dat/core/endpoint.h asks of a real domain, and faults are planted
// in it, never in the core. Everything that reaches a Consumer is held against
// sim::Consumer; what is broken is collected in violations().
#ifndef DAT_SIM_WORLD_H
#define DAT_SIM_WORLD_H

#include "core/endpoint.h"
#include "core/service_point.h"
#include "sim/consumer.h"
#include "sim/key.h"
#include "sim/network.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dat::sim {

// What can be planted in the domain layer.
enum class Fault : std::uint8_t {
    none,
    no_attempt_check,         // a happening counts for whatever attempt is current (EP-67)
    event_before_completions, // the ending event overtakes the flushes (U-7)
    lose_completion,          // a flushed receive is not queued (DISC-11)
    double_end,               // the ending event is raised twice (EP-70)
    early_receive,            // a message is delivered before ESTABLISHED (EP-75)
    early_send_completion,    // a send completes before the peer has placed it (U-61)
    drain_without_ack,        // drained when the data has left (U-42, DISC-16)
    completion_after_free,    // flushes are queued after free has returned (FREE-2)
    no_handshake_limit,       // U-65
    no_rnr_limit,             // U-9
    no_end_grace,             // U-67
    end_grace_breaks,         // a peer's end behind the grace is a broken connection (U-67)
    forget_requester,         // CR-6
    count_,
};
std::string_view name(Fault fault);

enum class ActionKind : std::uint8_t {
    // Calls of a Consumer; `arg` of accept and reject: which pending request.
    listen,
    unlisten,
    connect,
    reserve,
    unreserve,
    accept,
    reject,
    post_send,
    post_send_long,
    post_recv,
    disconnect_abrupt,
    disconnect_graceful,
    reset,
    free,
    create,
    // Misfortunes.
    die,        // the process ends; its host closes the connections
    die_silent, // the host vanishes
    restart,    // the process is started again
    break_conn, // `arg`: id of the connection; both ends notice
    lose_conn,  // nobody notices
    unreachable,
    async_error,
    latency, // `arg`: microseconds, for what is sent from now on
    // Progress: what goes on by itself.
    deliver,     // `host`: sender; `arg`: id * 2 + lane
    fire,        // `arg`: index of the timer
    flush_one,   // `arg`: Direction
    finish_late, // `arg`: Direction
    count_,
};

struct Action {
    ActionKind kind;
    int host;
    std::uint32_t arg;

    friend bool operator==(const Action&, const Action&) = default;
};
std::string to_string(const Action& action);
// The world does it by itself; only Consumers and misfortunes need not come.
bool is_progress(ActionKind kind);

// What may still be done; each use takes one, unless there is no end of it.
struct Budget {
    static constexpr std::uint32_t kUnlimited = ~0u;

    std::uint32_t connects = kUnlimited;
    std::array<std::uint32_t, kHosts> requests{kUnlimited, kUnlimited}; // posts, by host
    std::array<std::uint32_t, kHosts> receives{kUnlimited, kUnlimited};
    std::uint32_t calls = kUnlimited; // every other call of a Consumer
    std::uint32_t misfortunes = kUnlimited;

    friend bool operator==(const Budget&, const Budget&) = default;
};

struct Config {
    Fault fault = Fault::none;
    bool timed = true;             // a virtual clock orders progress; else anything may come first
    bool separate_lanes = false;   // management messages and data may overtake each other
    bool slow_flush = false;       // operations are let go of one by one (EP-68)
    bool local_completion = false; // a send completes when it has left (libfabric's default)
    bool keep_timers = false;      // timers of an ended attempt still fire (EP-67)
    bool no_ready = false;         // no ready-to-receive: the reply sent is enough (U-65)
    bool refused_calls = true;     // also offer calls that the state refuses
    bool frees = true;             // Consumers also free their endpoints, and make new ones
    bool unlisten = true;          // Consumers also close their listeners
    bool long_sends = true;        // Consumers also send more than a receive takes
    bool notes = false;            // record what happens in words
    bool records = false;          // and as values
    std::uint32_t limit = 3;       // operations outstanding a direction
    std::uint32_t backlog = 2;
    Budget budget;
    std::array<bool, kHosts> may_connect{true, true};
    std::array<core::ServicePoint::Kind, kHosts> listener{core::ServicePoint::Kind::consumer,
                                                          core::ServicePoint::Kind::consumer};
    std::int64_t connect_timeout_us = 5'000'000;
    std::int64_t handshake_us = 10'000'000;
    std::int64_t rnr_us = 10'000'000;
    std::int64_t end_grace_us = 10'000'000;
    std::int64_t keepalive_us = 30'000'000;

    friend bool operator==(const Config&, const Config&) = default;
};

struct Violation {
    int host;
    std::string_view rule;

    friend bool operator==(const Violation&, const Violation&) = default;
};

// A stimulus that reached a cell; what a run has covered.
struct Reached {
    core::Stimulus stimulus;
    core::State state;
};

// What happened in a step, for a trace.
struct Recorded {
    enum class Kind : std::uint8_t { created, transition, peer, posted, completed, violation };
    Kind kind{};
    int host = 0;
    core::State from{}; // created: the initial one
    core::State to{};
    core::Stimulus stimulus{};
    core::Outcome outcome{};
    core::Event pending{}; // that ENDING will raise
    core::Attempt attempt{};
    core::Attempt attempt_after{};
    bool late = false;
    Direction direction{};
    std::uint64_t seq = 0;
    core::DtoStatus status{};
    std::uint32_t conn = 0;
    std::string_view rule{};
};

class World {
  public:
    explicit World(const Config& config);

    std::vector<Action> enabled_actions() const;
    // Precondition: `action` is enabled.
    void step(const Action& action);

    const std::vector<Violation>& violations() const { return violations_; }
    // Adds what must hold once no progress is possible: nothing half-way.
    void check_rest();

    // Equal for worlds that behave alike from here on: identities are numbered
    // anew and time counts from now.
    // `first`: the host to begin with; key(0) of a world is key(1) of its mirror image.
    std::string canonical(int first = 0) const;
    Key key(int first = 0) const; // a hash of canonical()
    // The same for a world and its mirror image.
    Key mirrored_key() const;

    std::int64_t now_us() const { return now_us_; }
    const Config& config() const { return config_; }
    core::State state(int host) const { return host_(host).ep.state(); }
    bool dead(int host) const { return host_(host).dead; }
    const Consumer& consumer(int host) const { return host_(host).consumer; }

    // Of the last step alone.
    const std::vector<std::string>& notes() const { return notes_; }
    // While config().records; those of the constructor are there before the first step.
    const std::vector<Recorded>& records() const { return records_; }
    std::span<const Reached> reached() const { return {reached_.data(), reached_count_}; }

  private:
    friend class Canonical; // canonical.cpp

    struct PendingRequest {
        core::ConnRequest request;
        std::uint32_t conn;
        bool own; // it holds the host's endpoint (EP-14)
    };
    struct Host {
        explicit Host(std::uint32_t limit) : ep(limit, limit) {}
        core::Endpoint ep;
        Consumer consumer;
        core::ServicePoint listener{core::ServicePoint::Kind::consumer, 0};
        std::vector<PendingRequest> requests;
        bool dead = false;
        bool silent = false; // died without anybody being told
    };

    const Host& host_(int host) const { return hosts_[static_cast<std::size_t>(host)]; }
    Host& host_(int host) { return hosts_[static_cast<std::size_t>(host)]; }

    // actions.cpp
    void offer_calls(int host, std::vector<Action>& out) const;
    void offer_posts(int host, std::vector<Action>& out) const;
    void offer_misfortunes(std::vector<Action>& out) const;
    void offer_progress(std::vector<Action>& out) const;
    void offer_flushes(int host, std::vector<Action>& out) const;
    bool worth_offering(int host, core::Stimulus stimulus) const;
    bool request_in_flight(const Conn& conn) const;

    // world.cpp: calls and misfortunes
    static void use(std::uint32_t& left);
    void consumer_call(const Action& action);
    void lifecycle(const Action& action);
    void misfortune(const Action& action);
    void progress(const Action& action);
    core::Verdict call(int host, core::Stimulus stimulus);
    void listen(int host, core::ServicePoint::Kind kind);
    void connect(int host);
    void accept(int host, std::uint32_t index);
    void reject(int host, std::uint32_t index);
    void disconnect(int host, core::Stimulus stimulus);
    void settle_request(int host, std::uint32_t index, core::ConnRequest::Fate fate);
    void post(int host, Direction direction, MessageKind kind);
    void free(int host);
    void create(int host, core::State initial);
    void die(int host, bool silent);
    void lose(Conn& conn);
    void cut(Conn& conn);
    void check_step();
    void violate(int host, Consumer::Broken rule);
    void reach(core::Stimulus stimulus, core::State state);

    // network.cpp
    Conn& new_conn(int initiator);
    Conn* find(std::uint32_t id);
    Conn* current(int host); // the connection of the current attempt
    void bind(int host, Conn& conn);
    void unbind_all(int host);
    void send(Conn& conn, int from, MessageKind kind, std::uint64_t seq = 0);
    void arm(int host, TimerKind kind, const Conn& conn, std::int64_t after_us);
    void disarm(int host, TimerKind kind, const Conn& conn);
    MessageKind farewell(int host, const Conn& conn) const;
    void forget_dead_conns();
    bool in_use(const Conn& conn, int host) const;

    // arrivals.cpp
    void arrive(Conn& conn, int host, const Message& message);
    void request_arrives(Conn& conn, int host);
    bool announce(int host, Conn& conn);
    void reply_arrives(Conn& conn, int host);
    void message_arrives(Conn& conn, int host, const Message& message);
    void peer_ends(Conn& conn, int host, core::Stimulus stimulus);
    void place_staged(int host, Conn& conn);
    void acknowledged(int host, Conn& conn, std::uint64_t seq);

    // domain.cpp
    bool is_current(int host, const Conn& conn) const;
    bool in_data_state(int host) const;
    void fail_oldest(int host, core::DtoStatus status);
    void timer_fires(const Timer& timer);
    void flush_one(int host, Direction direction);
    void finish_late(int host, Direction direction);
    core::Verdict happen(int host, core::Stimulus stimulus, core::Attempt of);
    void after(int host, core::Stimulus stimulus, core::State before, const core::Outcome& outcome);
    void close_link(int host, bool broken);
    void settle(int host);
    void end_too_early(int host);
    void reap(int host);
    void complete(int host, Direction direction, const core::DtoStream::Done& done);
    void raise(int host, core::Event event);
    void check_delivery(int host);
    void check_broken(int host);
    void check_cause(int host, core::Event event);

    void note(int host, std::string_view what, std::string_view detail = {});
    void record(const Recorded& what) {
        if (config_.records) {
            records_.push_back(what);
        }
    }
    void created(int host, core::State initial);
    void record(int host, core::Stimulus stimulus, core::State from, core::Attempt attempt,
                const core::Outcome& outcome, bool late = false);

    Config config_;
    Budget left_;
    std::int64_t now_us_ = 0;
    std::int64_t latency_us_ = 10;
    std::uint32_t next_conn_ = 1;
    std::array<Host, kHosts> hosts_;
    std::vector<Conn> conns_;
    std::vector<Timer> timers_;
    std::vector<Violation> violations_;
    std::vector<std::string> notes_;
    std::vector<Recorded> records_;
    std::array<Reached, 16> reached_{}; // more than one step can meet
    std::size_t reached_count_ = 0;
};

} // namespace dat::sim

#endif
