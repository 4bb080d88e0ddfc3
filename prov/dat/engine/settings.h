// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What the FI_DAT_* variables decide for the software domain.
#ifndef DAT_ENGINE_SETTINGS_H
#define DAT_ENGINE_SETTINGS_H

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace dat::engine {

enum class Crc : std::uint8_t {
    automatic, // asked for except between addresses of one host; always granted
    on,
    off, // not asked for; still granted to a peer that asks
};

enum class ShmPeers : std::uint8_t {
    user, // of the same effective user
    any,  // whoever reaches the local socket and is expected there
};

enum class Stats : std::uint8_t {
    shown,   // to who looks (shm/viewers.h)
    off,     // not even that
    summary, // and logged as a domain closes
};

struct Settings {
    Crc crc = Crc::automatic;
    bool check_buffers = false;          // memory is looked at before it is used
    bool shm = true;                     // between peers of one host, shared memory
    ShmPeers shm_peers = ShmPeers::user; // and of whom
    Stats stats = Stats::shown;
    std::size_t unexpected_bytes = 64 * 1024;   // U-9: staged for a connection without a receive
    std::chrono::seconds rnr_limit{10};         // U-9
    std::chrono::milliseconds end_grace{10000}; // U-67
    std::chrono::seconds handshake_limit{10};   // U-65
    std::chrono::seconds keepalive{20};         // a peer silent for so long is dead; 0: never
    std::chrono::milliseconds rdm_idle{0};      // a peer's connection, unused; 0: it is kept
    // Of devices: an address, and the way there, have to be found in so long.
    std::chrono::milliseconds resolve_limit{2000};
    std::string trace;                               // the file to write to; empty: none
    std::size_t trace_bytes = std::size_t{64} << 20; // of that file
    bool trace_frames = false;                       // frames are recorded as well
    std::uint8_t retries = 7; // of what the peer's device has not acknowledged,
    std::optional<std::uint8_t>
        ack_timeout; // each after 4.096 us << this; 0: never (IBA 9.7.6.1.3)
};

} // namespace dat::engine

#endif
