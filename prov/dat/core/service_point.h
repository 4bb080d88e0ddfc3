// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Service points and connection requests: the bookkeeping of sections 8 of
// the DAT semantics, without sockets. Plain values; the owner serializes all
// calls.
#ifndef DAT_CORE_SERVICE_POINT_H
#define DAT_CORE_SERVICE_POINT_H

#include <cstdint>

namespace dat::core {

// A connection request (CR) lives until its Consumer settles it, however long
// that takes (CR-9), and remembers a requester that has gone (CR-6).
class ConnRequest {
  public:
    enum class Fate : std::uint8_t { pending, accepted, rejected, handed_off, destroyed };

    Fate fate() const { return fate_; }
    bool pending() const { return fate_ == Fate::pending; }

    // Exactly one of accept, reject, handoff or destruction settles a request
    // (OBJ-3); false, and nothing changed, where one already has.
    bool settle(Fate fate) {
        if (!pending() || fate == Fate::pending) {
            return false;
        }
        fate_ = fate;
        return true;
    }

    // The requester timed out, aborted or died (EP-50). The request stays
    // valid; accepting it makes the domain raise handshake_failed.
    void requester_left() { requester_gone_ = true; }
    bool requester_gone() const { return requester_gone_; }

    friend bool operator==(const ConnRequest&, const ConnRequest&) = default;

  private:
    Fate fate_ = Fate::pending;
    bool requester_gone_ = false;
};

// A service point: PSP in both models, or RSP.
class ServicePoint {
  public:
    enum class Kind : std::uint8_t { consumer, provider, reserved };

    // `backlog`: requests that may be announced and not yet taken from the
    // event queue (SP-3); an RSP takes one request in its life (SP-11).
    ServicePoint(Kind kind, std::uint32_t backlog) : kind_(kind), backlog_(backlog) {}

    Kind kind() const { return kind_; }
    bool listening() const { return listening_; }

    // A request that arrived now would be announced.
    bool has_room() const { return listening_ && announced_ < backlog_; }

    // A request arrives. True: announce it; false: its requester is refused
    // (NON_PEER_REJECTED) and nothing happens here (SP-3, SP-13).
    bool arrive() {
        if (!has_room()) {
            return false;
        }
        ++announced_;
        if (kind_ == Kind::reserved) {
            listening_ = false; // U-52: the qualifier is released on arrival
        }
        return true;
    }

    // The Consumer took an announced request from its event queue.
    void taken() { --announced_; }

    // SP-6, SP-12: requests already announced are not affected.
    void close() { listening_ = false; }

    friend bool operator==(const ServicePoint&, const ServicePoint&) = default;

  private:
    Kind kind_;
    bool listening_ = true;
    std::uint32_t backlog_;
    std::uint32_t announced_ = 0;
};

} // namespace dat::core

#endif
