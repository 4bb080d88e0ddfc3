// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The mapping to FI_E* and the words for it.
#include "ofi/errors.h"

#include <criterion/criterion.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <set>
#include <string>

using dat::core::DtoStatus;
using dat::core::Event;
using dat::core::PostVerdict;
using dat::core::Reason;
using namespace dat::ofi;

// STS-1: each status has its error; prov_errno tells those apart that share one.
Test(ofi_errors, completion_status__has_its_error) {
    cr_assert_eq(fi_error(DtoStatus::success), 0);
    cr_assert_eq(fi_error(DtoStatus::flushed), FI_ECANCELED);
    cr_assert_eq(fi_error(DtoStatus::local_length), FI_ETRUNC);
    cr_assert_eq(fi_error(DtoStatus::local_protection), FI_EACCES);
    cr_assert_eq(fi_error(DtoStatus::remote_access), FI_EACCES);
    cr_assert_eq(fi_error(DtoStatus::remote_responder), FI_EREMOTEIO);
    cr_assert_eq(fi_error(DtoStatus::bad_response), FI_EREMOTEIO);
    cr_assert_eq(fi_error(DtoStatus::receiver_not_ready), FI_ENORX);
    cr_assert_eq(fi_error(DtoStatus::transport), FI_ECONNABORTED);
    cr_assert_eq(fi_error(DtoStatus::local_ep), FI_EIO);
    cr_assert_eq(fi_error(DtoStatus::partial_packet), FI_EIO);
    cr_assert_eq(fi_error(DtoStatus::rmr_operation_failed), FI_EIO);
}

// EP-70: what ended a connection is FI_SHUTDOWN (0), what prevented one is an error.
Test(ofi_errors, ending_event__has_its_error) {
    cr_assert_eq(fi_error(Event::disconnected), 0);
    cr_assert_eq(fi_error(Event::broken), 0);
    cr_assert_eq(fi_error(Event::established), 0);
    cr_assert_eq(fi_error(Event::peer_rejected), FI_ECONNREFUSED);
    cr_assert_eq(fi_error(Event::non_peer_rejected), FI_ECONNREFUSED);
    cr_assert_eq(fi_error(Event::timed_out), FI_ETIMEDOUT);
    cr_assert_eq(fi_error(Event::unreachable), FI_EHOSTUNREACH);
    cr_assert_eq(fi_error(Event::accept_completion_error), FI_ECONNABORTED);
}

Test(ofi_errors, posting__says_why_not) {
    cr_assert_eq(fi_result(PostVerdict::posted), 0);
    cr_assert_eq(fi_result(PostVerdict::flushed), 0); // FLS-1: accepted
    cr_assert_eq(fi_result(PostVerdict::full), -FI_EAGAIN);
    cr_assert_eq(fi_result(PostVerdict::refused), -FI_EOPBADSTATE);
}

Test(ofi_errors, a_refusing_state__is_not_a_connected_socket) {
    cr_assert_eq(fi_result(-EISCONN), -FI_EOPBADSTATE);
    cr_assert_eq(fi_result(-EMFILE), -FI_EMFILE);
    cr_assert_eq(fi_result(0), 0);
}

Test(ofi_errors, every_status_and_reason__has_words_of_its_own) {
    std::set<std::string> words;
    for (int i = 0; i <= static_cast<int>(DtoStatus::rmr_operation_failed); ++i) {
        words.insert(text(static_cast<DtoStatus>(i)));
    }
    cr_assert_eq(words.size(), 12u);
    words.clear();
    for (int i = 0; i <= static_cast<int>(Reason::resources); ++i) {
        words.insert(text(static_cast<Reason>(i)));
    }
    cr_assert_eq(words.size(), 16u);
    cr_assert_str_eq(text(static_cast<Reason>(200)), "unknown reason");
}

Test(ofi_errors, text_for_a_short_buffer__is_cut_and_ended) {
    char room[5] = "????";
    cr_assert_eq(give_text("longer", room, sizeof room), room);
    cr_assert_str_eq(room, "long");
    const char* words = "kept";
    cr_assert_eq(give_text(words, nullptr, 10), words);
    cr_assert_eq(give_text(words, room, 0), words);
}

Test(ofi_errors, no_memory_behind_the_c_interface__is_a_value) {
    cr_assert_eq(no_throw([]() -> int { throw std::bad_alloc(); }), -FI_ENOMEM);
    cr_assert_eq(no_throw([] { return 7; }), 7);
}
