// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite: the event queue. Reading, blocking, writing, peeking, wait
// objects.
#include "suite.h"

#include <poll.h>

#include <array>
#include <atomic>
#include <cstring>
#include <thread>

using namespace dat::test;

namespace {

struct Read {
    ssize_t result;
    std::uint32_t event;
    fi_eq_entry entry;
};

Read read(fid_eq* eq, std::uint64_t flags = 0) {
    Read got{};
    got.result = fi_eq_read(eq, &got.event, &got.entry, sizeof got.entry, flags);
    return got;
}

Read sread(fid_eq* eq, int timeout_ms, std::uint64_t flags = 0) {
    Read got{};
    got.result = fi_eq_sread(eq, &got.event, &got.entry, sizeof got.entry, timeout_ms, flags);
    return got;
}

void notify(Side& side, std::uint64_t data) {
    fi_eq_entry entry{};
    entry.fid = &side.eq()->fid;
    entry.context = &side;
    entry.data = data;
    const ssize_t wrote = fi_eq_write(side.eq(), FI_NOTIFY, &entry, sizeof entry, 0);
    DAT_REQUIRE(wrote == static_cast<ssize_t>(sizeof entry), "fi_eq_write: " + error_name(wrote));
}

void require_note(Side& side, const Read& got, std::uint64_t data) {
    cr_assert_eq(got.result, static_cast<ssize_t>(sizeof(fi_eq_entry)), "read: %zd", got.result);
    cr_assert_eq(got.event, FI_NOTIFY);
    cr_assert_eq(got.entry.fid, &side.eq()->fid);
    cr_assert_eq(got.entry.context, &side);
    cr_assert_eq(got.entry.data, data);
}

SideOptions with_wait_fd() {
    SideOptions options;
    options.eq_wait = FI_WAIT_FD;
    return options;
}

} // namespace

TRANSPORT_TEST(eq_empty, read_sread_and_readerr__say_try_again) {
    Side side(transport);
    cr_assert_eq(read(side.eq()).result, -FI_EAGAIN);
    cr_assert_eq(read(side.eq(), FI_PEEK).result, -FI_EAGAIN);
    cr_assert_eq(sread(side.eq(), 20).result, -FI_EAGAIN);
    fi_eq_err_entry error{};
    cr_assert_eq(fi_eq_readerr(side.eq(), &error, 0), -FI_EAGAIN);
}

TRANSPORT_TEST(eq_write, notes__are_read_in_order) {
    Side side(transport);
    for (std::uint64_t i = 0; i < 5; ++i)
        notify(side, i);
    for (std::uint64_t i = 0; i < 5; ++i)
        require_note(side, i & 1 ? sread(side.eq(), kWaitMs) : read(side.eq()), i);
    cr_assert_eq(read(side.eq()).result, -FI_EAGAIN);
}

TRANSPORT_TEST(eq_peek, read_and_sread__leave_the_event) {
    Side side(transport);
    notify(side, 7);
    require_note(side, read(side.eq(), FI_PEEK), 7);
    require_note(side, sread(side.eq(), kWaitMs, FI_PEEK), 7);
    require_note(side, read(side.eq()), 7);
    cr_assert_eq(read(side.eq(), FI_PEEK).result, -FI_EAGAIN);
}

TRANSPORT_TEST(eq_read, into_too_small_a_buffer__keeps_the_event) {
    only_dat();
    Side side(transport);
    notify(side, 7);
    std::uint32_t event = 0;
    char small[4];
    cr_assert_eq(fi_eq_read(side.eq(), &event, small, sizeof small, 0), -FI_ETOOSMALL);
    require_note(side, read(side.eq()), 7);
}

// Private data is placed as far as there is space for it.
TRANSPORT_TEST(eq_read, of_a_request_into_room_for_less_data__does_not_overrun) {
    only_dat();
    Pair pair(transport);
    DAT_MUST(pair.active.connect(pair.far, pattern(50)));
    pair.far.asleep = true;
    alignas(fi_eq_cm_entry) std::array<std::uint8_t, sizeof(fi_eq_cm_entry) + 100> room;
    room.fill(0xAA);
    std::uint32_t event = 0;
    ssize_t got = -FI_EAGAIN;
    cr_assert(wait_until([&] {
        got = fi_eq_read(pair.far.eq(), &event, room.data(), sizeof(fi_eq_cm_entry) + 10, 0);
        return got != -FI_EAGAIN;
    }));
    for (std::size_t i = sizeof(fi_eq_cm_entry) + 10; i < room.size(); ++i)
        cr_assert_eq(room[i], 0xAA, "written behind the buffer");
    if (got < 0) {
        cr_assert_eq(got, -FI_ETOOSMALL);
        return;
    }
    cr_assert_eq(event, FI_CONNREQ);
    fi_eq_cm_entry entry{};
    std::memcpy(&entry, room.data(), sizeof entry);
    const Bytes expected = pattern(50);
    cr_assert(std::memcmp(room.data() + sizeof entry, expected.data(), 10) == 0);
    DAT_MUST(fi_reject(pair.far.pep(), entry.info->handle, nullptr, 0));
    fi_freeinfo(entry.info);
    wait_error(pair.near, FI_ECONNREFUSED);
}

TRANSPORT_TEST(eq_sread, blocked__is_woken_by_a_note) {
    Side side(transport);
    std::thread writer([&] { notify(side, 9); });
    // Without the note it would block for as long as the test may last.
    const Read got = sread(side.eq(), -1);
    writer.join();
    require_note(side, got, 9);
}

// ofi_rxm blocks like this, and reads only afterwards.
TRANSPORT_TEST(eq_sread, blocked_with_peek__is_woken_and_leaves_the_event) {
    Side side(transport);
    std::thread writer([&] { notify(side, 9); });
    const Read got = sread(side.eq(), -1, FI_PEEK);
    writer.join();
    require_note(side, got, 9);
    require_note(side, read(side.eq()), 9);
}

// A blocked reader drives its own side: nobody polls for it.
TRANSPORT_TEST(eq_sread, blocked__is_woken_by_a_connection_request) {
    Pair pair(transport);
    DAT_MUST(pair.active.connect(pair.far, pattern(30)));
    pair.far.asleep = true;
    std::atomic<bool> stop{false};
    std::thread driver([&] {
        while (!stop) {
            pump_all();
            std::this_thread::yield();
        }
    });
    alignas(fi_eq_cm_entry) std::uint8_t room[sizeof(fi_eq_cm_entry) + 100];
    std::uint32_t event = 0;
    const ssize_t got = fi_eq_sread(pair.far.eq(), &event, room, sizeof room, kWaitMs, 0);
    stop = true;
    driver.join();
    cr_assert_eq(got, static_cast<ssize_t>(sizeof(fi_eq_cm_entry) + 30), "fi_eq_sread: %zd", got);
    cr_assert_eq(event, FI_CONNREQ);
    fi_eq_cm_entry entry{};
    std::memcpy(&entry, room, sizeof entry);
    DAT_MUST(fi_reject(pair.far.pep(), entry.info->handle, nullptr, 0));
    fi_freeinfo(entry.info);
    wait_error(pair.near, FI_ECONNREFUSED);
}

TRANSPORT_TEST(eq_wait_fd, note__makes_it_readable_until_read) {
    Side side(transport, with_wait_fd());
    int fd = -1;
    DAT_MUST(fi_control(&side.eq()->fid, FI_GETWAIT, &fd));
    fid_t fid = &side.eq()->fid;
    cr_assert_eq(fi_trywait(side.fabric(), &fid, 1), FI_SUCCESS);
    pollfd entry{fd, POLLIN, 0};
    cr_assert_eq(poll(&entry, 1, 0), 0, "readable with nothing to read");
    notify(side, 3);
    cr_assert_eq(poll(&entry, 1, kWaitMs), 1, "not readable with an event");
    cr_assert_eq(fi_trywait(side.fabric(), &fid, 1), -FI_EAGAIN);
    require_note(side, read(side.eq()), 3);
    cr_assert_eq(read(side.eq()).result, -FI_EAGAIN);
    cr_assert_eq(fi_trywait(side.fabric(), &fid, 1), FI_SUCCESS);
    cr_assert_eq(poll(&entry, 1, 0), 0, "still readable");
}

// The whole life of a connection through wait FDs: no polling in between.
TRANSPORT_TEST(eq_wait_fd, connection_comes_and_goes__wakes_for_each_event) {
    only_dat();
    Pair pair(transport, {}, with_wait_fd());
    int fd = -1;
    DAT_MUST(fi_control(&pair.far.eq()->fid, FI_GETWAIT, &fd));
    pair.far.asleep = true;
    const auto wait_far = [&] {
        std::optional<Event> event;
        while (!(event = pair.far.read_event())) {
            pump_all(); // the other side
            fid_t fid = &pair.far.eq()->fid;
            if (fi_trywait(pair.far.fabric(), &fid, 1) != FI_SUCCESS)
                continue;
            // What the other side has still to do is done between the waits.
            pollfd entry{fd, POLLIN, 0};
            poll(&entry, 1, 5);
        }
        return std::move(*event);
    };
    DAT_MUST(pair.active.connect(pair.far));
    const Event request = wait_far();
    cr_assert_eq(request.type, FI_CONNREQ);
    Endpoint passive(pair.far, request);
    DAT_MUST(passive.accept());
    cr_assert_eq(wait_far().type, FI_CONNECTED);
    wait_event(pair.near, FI_CONNECTED);
    DAT_MUST(pair.active.disconnect(FI_DAT_ABRUPT));
    cr_assert_eq(wait_far().type, FI_SHUTDOWN);
}

// An error is read with fi_eq_readerr() and stays until then.
TRANSPORT_TEST(eq_error, of_a_refused_connection__stays_until_read) {
    Pair pair(transport);
    DAT_MUST(pair.active.connect(pair.far));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    pair.near.asleep = true;
    DAT_MUST(fi_reject(pair.far.pep(), request.info->handle, "no", 2));
    cr_assert(wait_until([&] { return read(pair.near.eq()).result == -FI_EAVAIL; }));
    cr_assert_eq(read(pair.near.eq()).result, -FI_EAVAIL);
    char data[16] = "";
    fi_eq_err_entry error{};
    error.err_data = data;
    error.err_data_size = sizeof data;
    cr_assert_eq(fi_eq_readerr(pair.near.eq(), &error, 0),
                 static_cast<ssize_t>(sizeof(fi_eq_err_entry)));
    cr_assert_eq(error.err, FI_ECONNREFUSED);
    cr_assert_eq(error.fid, pair.active.fid());
    cr_assert(std::memcmp(data, "no", 2) == 0);
    const char* said = fi_eq_strerror(pair.near.eq(), error.prov_errno, nullptr, nullptr, 0);
    cr_assert(said && *said);
    cr_assert_eq(read(pair.near.eq()).result, -FI_EAGAIN);
}

// Without room for it, err_data is the provider's own copy.
TRANSPORT_TEST(eq_error, read_without_a_buffer__gives_the_providers_data) {
    only_dat();
    Pair pair(transport);
    DAT_MUST(pair.active.connect(pair.far));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    pair.near.asleep = true;
    DAT_MUST(fi_reject(pair.far.pep(), request.info->handle, "sorry", 5));
    cr_assert(wait_until([&] { return read(pair.near.eq()).result == -FI_EAVAIL; }));
    fi_eq_err_entry error{};
    cr_assert_eq(fi_eq_readerr(pair.near.eq(), &error, 0),
                 static_cast<ssize_t>(sizeof(fi_eq_err_entry)));
    cr_assert_eq(error.err_data_size, 5);
    cr_assert(error.err_data && std::memcmp(error.err_data, "sorry", 5) == 0);
}

// A small EQ grows: U-16, no event is lost.
TRANSPORT_TEST(eq_size, smaller_than_what_happens__loses_nothing) {
    only_dat();
    Side side(transport);
    fi_eq_attr attr{};
    attr.size = 2;
    attr.flags = FI_WRITE;
    Fid<fid_eq> eq;
    DAT_MUST(fi_eq_open(side.fabric(), &attr, eq.out(), nullptr));
    std::uint64_t written = 0;
    for (; written < 20; ++written) {
        fi_eq_entry entry{};
        entry.data = written;
        const ssize_t wrote = fi_eq_write(eq.get(), FI_NOTIFY, &entry, sizeof entry, 0);
        if (wrote == -FI_EAGAIN)
            break; // full, and says so
        cr_assert_eq(wrote, static_cast<ssize_t>(sizeof entry));
    }
    cr_assert_geq(written, 2);
    for (std::uint64_t i = 0; i < written; ++i)
        cr_assert_eq(read(eq.get()).entry.data, i);
    cr_assert_eq(read(eq.get()).result, -FI_EAGAIN);
}

TRANSPORT_TEST(eq_open, with_any_wait_object__opens_or_refuses) {
    Side side(transport);
    for (const fi_wait_obj wait : {FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_FD}) {
        fi_eq_attr attr{};
        attr.wait_obj = wait;
        Fid<fid_eq> eq;
        DAT_MUST(fi_eq_open(side.fabric(), &attr, eq.out(), nullptr));
        cr_assert_eq(read(eq.get()).result, -FI_EAGAIN);
    }
    fi_eq_attr attr{};
    attr.wait_obj = static_cast<fi_wait_obj>(7);
    Fid<fid_eq> eq;
    cr_assert_neq(fi_eq_open(side.fabric(), &attr, eq.out(), nullptr), 0);
}
