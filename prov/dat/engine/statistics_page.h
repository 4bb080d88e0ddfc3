// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What a domain tells those who look at it from another process: memory that it shares with
// them, in this layout, which only the domain writes. What a look finds belongs together, also
// where the writer was killed in the middle of a line: there are two sheets, and the one that is
// being written is never the one that is read. An end of a connection is written once, before it
// is counted. Words are text already, so that a reader need not be of the writer's version.
#ifndef DAT_ENGINE_STATISTICS_PAGE_H
#define DAT_ENGINE_STATISTICS_PAGE_H

#include "base/fence.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace dat::engine::page {

// "datpage", and the number of this layout.
inline constexpr std::uint64_t kMagic = 0x6461747061676500 | 1;
// A domain's abstract socket, where the page is to be had: this, and 16 hexadecimal digits.
inline constexpr char kSocketPrefix[] = "dat-stats-";
inline constexpr std::size_t kRows = 1024;    // connections; others are counted in the totals
inline constexpr std::size_t kEnds = 64;      // what a domain keeps
inline constexpr std::size_t kEndSlots = 128; // so many more that none of those is overwritten
inline constexpr std::size_t kReasons = 32;   // numbers of enum fi_dat_reason below this
inline constexpr std::uint64_t kNone = ~0ull; // of a number: there is none

template <std::size_t size> using Text = std::array<char, size>; // with a zero at its end

// Of one connection, or of the attempt at one.
struct Row {
    std::uint64_t endpoint;        // counted from 1 in each domain
    std::uint64_t established_ns;  // CLOCK_MONOTONIC; 0: it is not
    std::uint64_t requests;        // sends, writes, reads, atomics, binds that have completed
    std::uint64_t request_bytes;   // of those that have not failed, and of those outstanding
    std::uint64_t receives;        // that have completed
    std::uint64_t receive_bytes;   // of the messages in those that succeeded
    std::uint64_t not_ready;       // how often a message had to wait for a receive
    std::uint64_t retransmissions; // of TCP; kNone where there is no TCP
    std::uint64_t rtt_us;          // as TCP knows it; likewise
    std::uint32_t requests_outstanding;
    std::uint32_t receives_outstanding;
    std::uint32_t waits_for_receive; // 1: a message does now
    std::uint32_t reserved;
    Text<32> state;
    Text<16> link;
    Text<64> local;
    Text<64> peer;
    Text<160> why; // it is this link
};

// The end of a connection, or of an attempt.
struct End {
    std::uint64_t number;   // counted from 0 in each domain
    std::uint64_t when_ns;  // CLOCK_REALTIME
    std::uint64_t lived_ns; // since it was established; kNone: it never was
    std::uint64_t endpoint;
    std::uint64_t requests; // of this connection
    std::uint64_t request_bytes;
    std::uint64_t receives;
    std::uint64_t receive_bytes;
    std::uint32_t reason; // enum fi_dat_reason
    std::uint32_t reserved;
    Text<32> state; // that it was in
    Text<16> link;
    Text<64> local;
    Text<64> peer;
    Text<32> event;    // that the program was given
    Text<32> stimulus; // the row of the state table
    Text<8> by;        // api: this program; wire, timer, local
    Text<96> reason_text;
    Text<96> clause;
};

// Of a domain since it was opened.
struct Totals {
    std::uint64_t written_ns;  // CLOCK_MONOTONIC, when this was true
    std::uint64_t endpoints;   // that exist
    std::uint64_t connected;   // of these
    std::uint64_t established; // connections in all
    std::uint64_t requests;
    std::uint64_t request_bytes;
    std::uint64_t receives;
    std::uint64_t receive_bytes;
    std::uint64_t requests_outstanding;
    std::uint64_t receives_outstanding;
    std::uint64_t not_ready;
    std::uint64_t rows;                       // that follow
    std::array<std::uint64_t, kReasons> ends; // by reason
};

struct Sheet {
    Totals totals;
    std::array<Row, kRows> rows;
};

struct Page {
    std::uint64_t magic;
    std::uint64_t size;      // of all of it
    std::uint64_t opened_ns; // the domain; CLOCK_REALTIME
    std::uint64_t period_ns; // how often a sheet is written, while the domain makes progress
    Text<64> name;
    Text<32> version; // of the provider
    // How many sheets have been written; the last is at the lowest bit of it.
    alignas(64) std::atomic<std::uint64_t> sheets;
    // How many ends there have been.
    std::atomic<std::uint64_t> ends;
    alignas(64) std::array<End, kEndSlots> end_slots;
    std::array<Sheet, 2> sheet;
};

static_assert(sizeof(Row) == 424 && sizeof(End) == 512 && sizeof(Totals) == 352,
              "another layout has another number");
static_assert(std::is_trivially_copyable_v<Sheet> && std::is_trivially_copyable_v<End>);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

inline void set_text(char* to, std::size_t size, const char* from) {
    const std::size_t length = strnlen(from, size - 1);
    std::memcpy(to, from, length);
    std::memset(to + length, 0, size - length);
}
template <std::size_t size> void set_text(Text<size>& to, const char* from) {
    set_text(to.data(), size, from);
}

// Word by word, each as one piece: another process may be writing, or reading.
template <class T> void copy_in(T& shared, const T& value) {
    static_assert(sizeof(T) % 8 == 0 && alignof(T) == 8);
    auto* const to = reinterpret_cast<std::uint64_t*>(&shared);
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    for (std::size_t i = 0; i < sizeof(T) / 8; ++i) {
        std::uint64_t word = 0;
        std::memcpy(&word, from + i * 8, 8);
        std::atomic_ref(to[i]).store(word, std::memory_order_relaxed);
    }
}
template <class T> void copy_out(T& value, const T& shared) {
    static_assert(sizeof(T) % 8 == 0 && alignof(T) == 8);
    // atomic_ref<const T> is of a later standard.
    auto* const from = reinterpret_cast<std::uint64_t*>(const_cast<T*>(&shared));
    auto* to = reinterpret_cast<std::byte*>(&value);
    for (std::size_t i = 0; i < sizeof(T) / 8; ++i) {
        const std::uint64_t word = std::atomic_ref(from[i]).load(std::memory_order_relaxed);
        std::memcpy(to + i * 8, &word, 8);
    }
}

// --- the writer ---

// Writes a sheet: `fill(Sheet&)` by copy_in(). Nothing waits for readers.
template <class Fill> void write_sheet(Page& page, Fill&& fill) {
    const std::uint64_t written = page.sheets.load(std::memory_order_relaxed);
    // Whoever sees a word of the next sheet sees that the last one is complete.
    base::release_fence();
    fill(page.sheet[(written + 1) & 1]);
    page.sheets.store(written + 1, std::memory_order_release);
}

inline void write_end(Page& page, const End& end) {
    const std::uint64_t count = page.ends.load(std::memory_order_relaxed);
    base::release_fence();
    copy_in(page.end_slots[count % kEndSlots], end);
    page.ends.store(count + 1, std::memory_order_release);
}

// --- a reader; what it gets is its own, and may be any bytes where the writer is hostile ---

// False: there is none yet, or the writer was too quick each time.
inline bool read_sheet(const Page& page, Sheet& into) {
    constexpr int kTries = 1000;
    for (int i = 0; i < kTries; ++i) {
        const std::uint64_t before = page.sheets.load(std::memory_order_acquire);
        if (before == 0) {
            return false;
        }
        const Sheet& from = page.sheet[before & 1];
        copy_out(into.totals, from.totals);
        into.totals.rows = into.totals.rows < kRows ? into.totals.rows : kRows;
        for (std::size_t row = 0; row < into.totals.rows; ++row) {
            copy_out(into.rows[row], from.rows[row]);
        }
        base::acquire_fence();
        if (page.sheets.load(std::memory_order_relaxed) == before) {
            return true;
        }
    }
    return false;
}

// The last ones, the oldest first, to `sink(const End&)`; at most kEnds.
template <class Sink> void read_ends(const Page& page, Sink&& sink) {
    const std::uint64_t count = page.ends.load(std::memory_order_acquire);
    for (std::uint64_t i = count > kEnds ? count - kEnds : 0; i < count; ++i) {
        End end;
        copy_out(end, page.end_slots[i % kEndSlots]);
        base::acquire_fence();
        // Of a slot that is being written again the count has come round to it.
        if (page.ends.load(std::memory_order_relaxed) - i < kEndSlots) {
            sink(end);
        }
    }
}

} // namespace dat::engine::page

#endif
