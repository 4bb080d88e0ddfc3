// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A peer of a reliable datagram endpoint: whether there is a connection to it, which one, and
// what becomes of what is queued for it. The table is rdm_peer.def. No I/O, clock, thread or
// memory: what is to be done is returned. A plain value: copies are independent. The owner
// serializes all calls.
//
// Both ends have one of these for the other. There is one connection at most between two
// endpoints, whoever began it; it is made when an operation needs it. What makes that so:
//
// - Who is at an address. Each endpoint draws an RdmIdentity when it is opened. A request says
//   whose it is and for whom (whoever is there, where nobody is known), and so a process that
//   has come to the address of another rejects what was meant for that one, and who finds
//   another one than was known fails what it had queued. Known is who confirmed a
//   connection, until that one is told to be dead.
// - Which attempt counts. Attempts are numbered by the endpoint that makes them. Who accepts
//   one says which number of its own was the last: up to that all are given up. A request
//   with a number that was given up or used is stale, however late it comes.
// - Requests that cross. That of the smaller identity comes first: both ends compare the same
//   two, whichever of their attempts these are. Who receives the second rejects it and goes on
//   with its own, who receives the first gives its own up and accepts.
// - What was given up never counts. Who has accepted sends nothing until the first frame of the
//   initiator has come, which sends one as soon as it is established: so both have chosen the
//   same connection before either sends on it, and an attempt that loses takes no operation
//   with it.
// - An operation is bound to one connection: what is outstanding when that ends completes
//   with the cause, and is never sent again. What is queued goes to the next connection
//   only if none was told to be over since.
//
// How it is used:
//   1. each connection or attempt has the number connection() when it begins; happenings of
//      another number are late and answered so;
//   2. Answer::todo is what is to be done, in the order of the bits. drop and leave are of
//      Answer::before, what was the connection() before the call;
//   3. begin() gives the private data of the attempt that `connect` asks for, reply() that of
//      an accept or a rejection;
//   4. an endpoint does not connect to itself: what it sends itself needs no peer.
#ifndef DAT_CORE_RDM_PEER_H
#define DAT_CORE_RDM_PEER_H

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dat::core {

enum class RdmState : std::uint8_t {
#define DAT_RDM_STATE(name, abbreviation, meaning) name,
#include "core/rdm_peer.def"
    removed, // the end; it has no cells
};
inline constexpr std::size_t kRdmStateCount = static_cast<std::size_t>(RdmState::removed);

enum class RdmStimulus : std::uint8_t {
#define DAT_RDM_ROW(stimulus, cls, meaning, ...) stimulus,
#include "core/rdm_peer.def"
    count_,
};
inline constexpr std::size_t kRdmStimulusCount = static_cast<std::size_t>(RdmStimulus::count_);

enum class RdmVerdict : std::uint8_t { go, wait, send, error, ignore, impossible };

// What is to be done, as bits, in the order in which it is done.
using RdmTodo = std::uint32_t;
enum class RdmAction : std::uint8_t {
    fail,
    stop,
    drop,
    refuse_crossed,
    refuse_stale,
    refuse_other,
    accept,
    connect,
    leave,
    ask,
    agree,
    decline,
    retry,
    expect,
    go,
    count_,
};
inline constexpr RdmTodo todo(RdmAction action) {
    return RdmTodo{1} << static_cast<unsigned>(action);
}

struct RdmCell {
    RdmVerdict verdict;
    RdmState next; // the state itself where it does not change
    RdmTodo todo;

    friend constexpr bool operator==(const RdmCell&, const RdmCell&) = default;
};

// The whole table: [stimulus][state].
extern const std::array<std::array<RdmCell, kRdmStateCount>, kRdmStimulusCount> kRdmTable;

inline const RdmCell& cell(RdmStimulus stimulus, RdmState state) {
    return kRdmTable[static_cast<std::size_t>(stimulus)][static_cast<std::size_t>(state)];
}

// Each is a literal, so that data() ends with a zero.
std::string_view name(RdmState state);
std::string_view abbreviation(RdmState state); // three letters
std::string_view meaning(RdmState state);      // one or more sentences
std::string_view name(RdmStimulus stimulus);
std::string_view meaning(RdmStimulus stimulus);        // a sentence
std::string_view stimulus_class(RdmStimulus stimulus); // api, wire, timer
std::string_view name(RdmVerdict verdict);
std::string_view name(RdmAction action);

// Tells an endpoint from every other, also from those that were or will be at its address.
struct RdmIdentity {
    std::uint64_t began = 0; // when it was opened, by whatever clock; a later one has more
    std::uint64_t drawn = 0; // a number that nobody guesses

    bool known() const { return began != 0 || drawn != 0; }
    friend constexpr auto operator<=>(const RdmIdentity&, const RdmIdentity&) = default;
};

// An endpoint, as its peers have it in common.
struct RdmSelf {
    RdmIdentity identity;       // known()
    std::uint64_t attempts = 0; // that it has begun, to any peer

    friend bool operator==(const RdmSelf&, const RdmSelf&) = default;
};

// What a request says.
struct RdmHello {
    RdmIdentity from;
    RdmIdentity to; // not known(): whoever is there
    std::uint64_t number = 0;

    friend bool operator==(const RdmHello&, const RdmHello&) = default;
};

// Why a request is rejected.
enum class RdmRefusal : std::uint8_t { none, crossed, stale, other };

// What the answer to a request says, an accept or a rejection.
struct RdmReply {
    RdmIdentity from;
    std::uint64_t given_up = 0; // the number of its last attempt
    RdmRefusal refusal = RdmRefusal::none;

    friend bool operator==(const RdmReply&, const RdmReply&) = default;
};

class RdmPeer {
  public:
    // How often is tried, and when again.
    struct Limits {
        std::uint32_t attempts = 8; // at least 1
        std::uint32_t first_retry_us = 1'000;
        std::uint32_t longest_retry_us = 1'000'000;
        std::uint32_t expect_us = 5'000'000; // the peer's own attempt, behind one that lost

        friend bool operator==(const Limits&, const Limits&) = default;
    };
    // A connection or an attempt at one; never reused by a peer. 0: there was none.
    using Connection = std::uint32_t;

    struct Answer {
        RdmVerdict verdict;
        RdmTodo todo;
        Connection before;
        RdmStimulus stimulus; // what it was, in the table
        bool late;            // it never reached the table

        bool has(RdmAction action) const { return (todo & core::todo(action)) != 0; }
    };

    RdmState state() const { return state_; }
    Connection connection() const { return connection_; }
    // Who confirmed a connection, and was not told to be dead.
    const RdmIdentity& known() const { return known_; }

    // --- the program ---

    Answer operation() { return apply(RdmStimulus::operation); }
    Answer named_receive() { return apply(RdmStimulus::named_receive); }
    Answer remove() { return apply(RdmStimulus::remove); }

    // --- an attempt of ours ---

    // Begins: what the request says. After `connect`.
    RdmHello begin(RdmSelf& self);
    // The peer's answer.
    Answer answered(Connection of, const RdmReply& reply, const Limits& limits);
    // It failed without one: refused, unreachable, timed out, or what came is no answer.
    Answer failed(Connection of, const Limits& limits);

    // --- a request of the peer ---

    Answer request(const RdmSelf& self, const RdmHello& hello);
    // What its answer says.
    static RdmReply reply(const RdmSelf& self, const Answer& answer);
    // The first frame of the connection that was accepted has come, whatever it is.
    Answer confirmed(Connection of);

    // --- a connection, accepted or established ---

    // `queued`: operations are.
    Answer ended(Connection of, bool queued);
    // Those of the release; `used`: something is queued or outstanding.
    Answer unused(Connection of) { return happen(of, RdmStimulus::unused); }
    Answer asked(Connection of, bool used) {
        return happen(of, used ? RdmStimulus::asked_used : RdmStimulus::asked_unused);
    }
    Answer agreed(Connection of) { return happen(of, RdmStimulus::agreed); }
    Answer declined(Connection of) { return happen(of, RdmStimulus::declined); }

    // --- the timer; it is one, and was not stopped ---

    Answer due(bool queued, const Limits& limits);
    // How long it takes. `random`: any number; peers that failed together come back apart.
    std::uint32_t retry_us(const Limits& limits, std::uint32_t random) const;

    friend bool operator==(const RdmPeer&, const RdmPeer&) = default;

    // An attempt of the peer.
    struct Theirs {
        RdmIdentity from;
        std::uint64_t number = 0;

        bool covers(const RdmHello& hello) const {
            return from == hello.from && hello.number <= number;
        }
        friend bool operator==(const Theirs&, const Theirs&) = default;
    };
    // All that it is but its connection(), for who tells peers apart that behave differently.
    struct Fields {
        RdmState state;
        bool was_dead;
        std::uint32_t before;
        RdmIdentity known;
        Theirs given_up, accepted;
    };
    Fields fields() const { return {state_, was_dead_, before_, known_, given_up_, accepted_}; }

  private:
    Answer apply(RdmStimulus stimulus);
    Answer happen(Connection of, RdmStimulus stimulus);
    RdmStimulus kind_of(const RdmSelf& self, const RdmHello& hello) const;
    bool linked() const {
        return state_ == RdmState::connected || state_ == RdmState::asking ||
               state_ == RdmState::releasing;
    }

    RdmState state_ = RdmState::idle;
    bool was_dead_ = false;    // when the request was accepted
    std::uint32_t before_ = 0; // attempts that failed since the last connection
    Connection connection_ = 0;
    RdmIdentity known_;
    Theirs given_up_; // of who was known last: attempts up to that
    Theirs accepted_; // the one that was accepted last
};

} // namespace dat::core

#endif
