// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// DTO accounting: what core::DtoStream promises, by example.
#include "core/dto_stream.h"

#include <criterion/criterion.h>

#include <vector>

using namespace dat::core;

namespace {

std::vector<DtoStatus> pop_all(DtoStream& stream) {
    std::vector<DtoStatus> out;
    for (DtoStream::Done done{}; stream.pop(done);) {
        out.push_back(done.status);
    }
    return out;
}

} // namespace

// DISC-8, EVD-5: whatever finishes first, completions come in posting order.
Test(core_dto_stream, finished_out_of_order__completes_in_posting_order) {
    DtoStream stream(3);
    for (int i = 0; i < 3; ++i) {
        stream.post();
    }
    DtoStream::Done done{};
    cr_assert(stream.finish(2, DtoStatus::success));
    cr_assert(stream.finish(1, DtoStatus::success));
    cr_assert_not(stream.pop(done));
    cr_assert(stream.finish(0, DtoStatus::success));
    for (std::uint64_t seq = 0; seq < 3; ++seq) {
        cr_assert(stream.pop(done));
        cr_assert_eq(done.seq, seq);
    }
    cr_assert(stream.idle());
}

// DISC-7, DISC-8: successes, one error, then FLUSHED, even for what succeeded.
Test(core_dto_stream, after_an_error__everything_later_is_flushed) {
    DtoStream stream(4);
    for (int i = 0; i < 4; ++i) {
        stream.post();
    }
    stream.finish(0, DtoStatus::success);
    stream.finish(1, DtoStatus::remote_access);
    stream.finish(2, DtoStatus::success);
    stream.finish(3, DtoStatus::transport);
    const std::vector<DtoStatus> expected{DtoStatus::success, DtoStatus::remote_access,
                                          DtoStatus::flushed, DtoStatus::flushed};
    cr_assert(pop_all(stream) == expected);
}

// DISC-3, EP-72: a flush leaves what has finished already as it is.
Test(core_dto_stream, flush__spares_what_has_finished) {
    DtoStream stream(3);
    for (int i = 0; i < 3; ++i) {
        stream.post();
    }
    stream.finish(0, DtoStatus::success);
    stream.flush();
    cr_assert_not(stream.finish(1, DtoStatus::success));
    const std::vector<DtoStatus> expected{DtoStatus::success, DtoStatus::flushed,
                                          DtoStatus::flushed};
    cr_assert(pop_all(stream) == expected);
}

// RST-4, EP-25: after restart successes are possible again; what is posted stays.
Test(core_dto_stream, restart__keeps_what_is_posted_and_allows_successes) {
    DtoStream stream(2);
    stream.post();
    stream.flush();
    cr_assert_eq(pop_all(stream).size(), 1u);
    const std::uint64_t seq = stream.post();
    stream.restart();
    cr_assert_eq(stream.outstanding(), 1u);
    stream.finish(seq, DtoStatus::success);
    const std::vector<DtoStatus> expected{DtoStatus::success};
    cr_assert(pop_all(stream) == expected);
}

// DTO-5, from both sides: exactly `limit` fit, also where it is no power of two.
Test(core_dto_stream, limit__is_exact) {
    for (const std::uint32_t limit : {1u, 2u, 3u, 5u, 64u}) {
        DtoStream stream(limit);
        cr_assert_geq(stream.slots(), limit);
        for (int round = 0; round < 3; ++round) {
            for (std::uint32_t i = 0; i < limit; ++i) {
                cr_assert_not(stream.full());
                stream.post();
            }
            cr_assert(stream.full());
            stream.finish(stream.first(), DtoStatus::success);
            cr_assert(stream.full(), "an operation counts until its completion is taken");
            DtoStream::Done done{};
            cr_assert(stream.pop(done));
            cr_assert_not(stream.full());
            stream.flush();
            cr_assert_eq(pop_all(stream).size(), limit - 1);
            cr_assert(stream.idle());
            stream.restart();
        }
    }
}

// Outstanding operations never share a slot.
Test(core_dto_stream, outstanding_operations__have_slots_of_their_own) {
    DtoStream stream(3);
    for (std::uint64_t round = 0; round < 20; ++round) {
        while (!stream.full()) {
            stream.post();
        }
        std::vector<bool> used(stream.slots());
        for (std::uint64_t seq = stream.first(); seq != stream.next(); ++seq) {
            cr_assert_not(used[stream.slot(seq)]);
            used[stream.slot(seq)] = true;
        }
        DtoStream::Done done{};
        stream.finish(stream.first(), DtoStatus::success);
        cr_assert(stream.pop(done));
    }
}

// However many operations there were: an owner's array is touched as far as it is used at once.
Test(core_dto_stream, as_few_slots_are_used__as_operations_are_outstanding_at_once) {
    for (const std::uint32_t at_once : {1u, 3u, 8u}) {
        DtoStream stream(8);
        for (int round = 0; round < 20; ++round) {
            for (std::uint32_t i = 0; i < at_once; ++i) {
                cr_assert_eq(stream.slot(stream.post()), i);
            }
            const std::uint64_t last = stream.next() - 1;
            stream.flush();
            cr_assert_eq(pop_all(stream).size(), at_once);
            stream.restart();
            cr_assert_eq(stream.slot(last), at_once - 1, "it is still that of the last one");
        }
    }
}

// EPA-5: another limit keeps what is outstanding, in its order and with its numbers.
Test(core_dto_stream, resized__keeps_what_is_outstanding) {
    DtoStream stream(4);
    DtoStream::Done done{};
    for (int i = 0; i < 3; ++i) {
        stream.post();
        stream.finish(stream.first(), DtoStatus::success);
        cr_assert(stream.pop(done));
    }
    stream.post();
    const std::uint64_t second = stream.post();
    stream.post();
    stream.finish(second, DtoStatus::success);
    const DtoStream before = stream;
    cr_assert_not(stream.resize(2));
    cr_assert(stream == before);
    for (const std::uint32_t limit : {3U, 100U, 5U}) {
        cr_assert(stream.resize(limit));
        cr_assert_eq(stream.limit(), limit);
        cr_assert_eq(stream.outstanding(), 3);
        cr_assert_eq(stream.full(), limit == 3);
        cr_assert(stream.finished(second) && !stream.finished(stream.first()));
    }
    stream.finish(stream.first(), DtoStatus::success);
    cr_assert(stream.pop(done) && stream.pop(done) && done.seq == second && !stream.pop(done));
}

// A plain value: what happens to a copy does not show in the original.
Test(core_dto_stream, copy__is_independent) {
    DtoStream original(2);
    original.post();
    DtoStream copy = original;
    cr_assert(copy == original);
    copy.flush();
    DtoStream::Done done{};
    cr_assert(copy.pop(done));
    cr_assert_not(original.pop(done));
    cr_assert_not(copy == original);
}
