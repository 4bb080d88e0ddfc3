// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Up to three hosts, each with a reliable datagram endpoint whose peers are core::RdmPeer,
// joined by a simulated network. Like sim::World a plain value that can be copied and hashed,
// and changes only by step(action) with one of enabled_actions(). No wall clock, no
// randomness, no global state.
//
// Between core and network stands a domain layer that does what core/rdm_peer.h asks of a real
// one; faults are planted in it, never in the core. A connection is no more here than the
// promise that core::Endpoint gives: what is sent arrives once and in order, or the
// connection ends. What is broken is collected in violations().
#ifndef DAT_SIM_RDM_WORLD_H
#define DAT_SIM_RDM_WORLD_H

#include "core/rdm_peer.h"
#include "sim/key.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dat::sim {

inline constexpr int kRdmHosts = 3;

// What can be planted in the domain layer.
enum class RdmFault : std::uint8_t {
    none,
    both_accept,      // of requests that cross each end accepts the other's
    both_refuse,      // ... rejects the other's
    send_unconfirmed, // who accepts sends at once
    any_identity,     // nobody looks for whom a request is
    any_number,       // nobody looks whether an attempt was given up
    send_again,       // what was outstanding goes to the next connection
    late_counts,      // what is of an older connection counts for this one
    lose_queued,      // what is queued does not complete when the peer dies
    keep_receives,    // receives that name a dead source stay posted
    just_leave,       // an idle connection ends without the peer having been asked
    agree_always,     // asked, a peer lets go whatever is outstanding
    no_expect,        // who yields sets no timer
    no_limit,         // attempts go on for ever
    count_,
};
std::string_view name(RdmFault fault);

enum class RdmActionKind : std::uint8_t {
    // Programs; `arg`: the peer's host.
    post,
    receive, // from that source alone
    release, // what is unused may be let go now
    forget,  // the peer is removed, and there anew
    // Misfortunes.
    die,        // the process ends; its host closes the connections
    die_silent, // the host vanishes
    restart,    // there is a process at the address again
    refuse,     // `arg`: a connection whose request finds no room
    time_out,   // `arg`: ... whose initiator gives it up, while it may still arrive
    break_conn, // `arg`: a connection; both ends notice
    lose_conn,  // nobody notices, until it has been silent for long
    latency,    // `arg`: microseconds, of what is sent from now on
    // Progress.
    deliver, // `arg`: connection * 2 + the side that sent it
    notice,  // `arg`: connection * 2 + the side that finds it lost
    due,     // the timer of peer `arg`
    count_,
};

struct RdmSimAction {
    RdmActionKind kind;
    int host;
    std::uint32_t arg;
};
std::string to_string(const RdmSimAction& action);
bool is_progress(const RdmSimAction& action);

struct RdmConfig {
    RdmFault fault = RdmFault::none;
    int hosts = kRdmHosts;
    bool timed = true;         // a virtual clock orders progress; else anything may come first
    bool notes = false;        // record what happens in words
    bool clock_back = false;   // who restarts has begun earlier, by its clock
    std::uint32_t posts = ~0u; // that each host may do; ~0: no end of it
    std::uint32_t receives = ~0u;
    std::uint32_t releases = ~0u;
    std::uint32_t forgets = ~0u;
    std::uint32_t misfortunes = ~0u; // all together; a restart is none
    std::uint32_t restarts = ~0u;
    core::RdmPeer::Limits limits;
};

struct RdmViolation {
    int host;
    std::string_view rule;
};

class RdmWorld {
  public:
    struct Reached {
        core::RdmStimulus stimulus;
        core::RdmState state;
    };

    explicit RdmWorld(const RdmConfig& config);

    std::vector<RdmSimAction> enabled_actions() const;
    // Precondition: `action` is enabled.
    void step(const RdmSimAction& action);
    const std::vector<RdmViolation>& violations() const { return violations_; }
    // Adds what must hold once no progress is possible.
    void check_rest();
    // At rest: what has gone wrong so far excuses nothing any more.
    void forgive();
    // Equal for worlds that behave alike from here on.
    Key key() const;

    std::int64_t now_us() const { return now_us_; }
    const std::vector<std::string>& notes() const { return notes_; } // of the last step
    const std::vector<Reached>& reached() const { return reached_; } // of the last step

  private:
    using Connection = core::RdmPeer::Connection;
    enum class Kind : std::uint8_t {
        request,
        accept,
        reject,
        refused, // nobody is there, or has room
        confirm, // the initiator's first frame
        data,
        ack,
        ask,
        agree,
        decline,
        fin, // the other end has closed, or died
    };
    struct Message {
        Kind kind;
        std::uint32_t number = 0; // of data and ack
        std::uint32_t meant = 0;  // the life that the data is for; 0: any
        core::RdmHello hello{};
        core::RdmReply reply{};
        std::int64_t due_us = 0;
    };
    struct Side {
        int host = 0;
        std::uint32_t life = 0; // 0: the request has not arrived
        bool open = true;       // what comes is still looked at
        bool bound = false;     // the peer's connection or attempt
        bool fin = false;       // has been sent
        Connection number = 0;
    };
    struct Conn {
        std::uint32_t id = 0;
        bool lost = false;
        std::int64_t lost_us = 0;
        std::array<Side, 2> side;                 // the initiator first
        std::array<std::vector<Message>, 2> lane; // what that side has sent, oldest first
    };
    struct Op {
        std::uint32_t number;
        std::uint32_t meant;
    };
    enum class Timer : std::uint8_t { off, retry, expect };
    struct Peer {
        core::RdmPeer machine;
        std::vector<Op> queued;
        std::vector<Op> outstanding;
        std::uint32_t next = 1;     // number of the next operation
        std::uint32_t named = 0;    // receives that are posted for it
        std::uint32_t attempts = 0; // since it was connected or failed
        std::uint32_t told = 0;     // the life that the program knows of
        std::uint32_t heard_life = 0;
        std::uint32_t heard = 0; // number of the last message of that life
        Timer timer = Timer::off;
        std::int64_t due_us = 0;
    };
    struct Host {
        bool dead = false;
        bool silent = false;
        std::uint32_t life = 1;
        core::RdmSelf self;
        std::array<Peer, kRdmHosts> peers;
        std::uint32_t posts, receives, releases, forgets;
    };

    Host& host(int i) { return hosts_[static_cast<std::size_t>(i)]; }
    const Host& host(int i) const { return hosts_[static_cast<std::size_t>(i)]; }
    Peer& peer(int at, int of) { return host(at).peers[static_cast<std::size_t>(of)]; }
    const Peer& peer(int at, int of) const { return host(at).peers[static_cast<std::size_t>(of)]; }
    core::RdmIdentity identity(int at) const;

    // rdm_world.cpp
    void offer_calls(int at, std::vector<RdmSimAction>& out) const;
    void offer_misfortunes(std::vector<RdmSimAction>& out) const;
    void offer_progress(std::vector<RdmSimAction>& out) const;
    bool attempt_in_flight(int from, int to) const;
    void program(const RdmSimAction& action);
    void misfortune(const RdmSimAction& action);
    void die(int at, bool silent);
    void harm(int a, int b);
    void violate(int at, std::string_view rule);
    void note(int at, const std::string& text);

    // rdm_domain.cpp
    void act(int at, int of, const core::RdmPeer::Answer& answer, Conn* request = nullptr);
    void met(int at, int of, core::RdmState was, const core::RdmPeer::Answer& answer,
             Conn* request = nullptr);
    core::RdmPeer::Limits limits() const;
    Connection counted(int at, int of, Connection number);
    void fail(int at, int of, bool excused);
    void go(int at, int of);
    void begin(int at, int of);
    Conn* bound(int at, int of, Connection number, int& side);
    Conn* find(std::uint32_t id);
    void send(Conn& conn, int side, Message message);
    void close(Conn& conn, int side);
    void arrive(Conn& conn, int to, const Message& message);
    void request_arrives(Conn& conn, const Message& message);
    void answer_arrives(int at, int of, Conn& conn, const Message& message);
    void frame_arrives(int at, int of, Conn& conn, int to, const Message& message);
    void data_arrives(int at, int of, Conn& conn, int to, const Message& message);
    void end(Conn& conn, int side);
    void forget_conns();

    RdmConfig config_;
    std::uint32_t misfortunes_;
    std::uint32_t restarts_;
    std::int64_t now_us_ = 0;
    std::int64_t latency_us_ = 10;
    std::uint32_t next_conn_ = 1;
    std::array<Host, kRdmHosts> hosts_{};
    std::vector<Conn> conns_;
    // What has gone wrong between two hosts, so that operations may fail.
    std::array<std::array<bool, kRdmHosts>, kRdmHosts> harmed_{};
    std::array<std::array<std::uint32_t, kRdmHosts>, kRdmHosts> refusals_{};
    std::vector<RdmViolation> violations_;
    std::vector<std::string> notes_;
    std::vector<Reached> reached_;
};

} // namespace dat::sim

#endif
