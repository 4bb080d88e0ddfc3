// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Two endpoints in one process, through dat_* calls alone.
#ifndef DAT_TEST_SHIM_PAIR_H
#define DAT_TEST_SHIM_PAIR_H

#include "adapter.h"
#include "api.h"

#include <criterion/criterion.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dat::test {

inline constexpr DAT_TIMEOUT kSoon = 60'000'000; // us; nothing here takes that long
inline constexpr DAT_TIMEOUT kBriefly = 50'000;  // us, for what must not come

// An open adapter with a zone; closed abruptly.
struct Adapter {
    Adapter();
    ~Adapter();
    DAT_EVD_HANDLE evd(DAT_EVD_FLAGS flags, DAT_COUNT length = 64,
                       DAT_CNO_HANDLE cno = DAT_HANDLE_NULL) const;

    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
};

// Registered memory with all rights.
struct Memory {
    explicit Memory(const Adapter& adapter, DAT_MEM_PRIV_FLAGS privileges = DAT_MEM_PRIV_ALL_FLAG);
    DAT_LMR_TRIPLET at(std::size_t offset, std::size_t length);
    DAT_RMR_TRIPLET remote(std::size_t offset, std::size_t length);

    alignas(8) std::array<char, 8192> bytes{};
    DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
    DAT_LMR_CONTEXT lmr_context = 0;
    DAT_RMR_CONTEXT rmr_context = 0;
};

// An endpoint with an EVD for each stream.
struct Side {
    explicit Side(const Adapter& adapter, const DAT_EP_ATTR* attr = nullptr,
                  DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL);
    DAT_EP_STATE state() const;
    DAT_RETURN send(const DAT_LMR_TRIPLET& piece, std::uint64_t cookie,
                    DAT_COMPLETION_FLAGS flags = DAT_COMPLETION_DEFAULT_FLAG) const;
    DAT_RETURN receive(const DAT_LMR_TRIPLET& piece, std::uint64_t cookie) const;
    DAT_RETURN connect(DAT_CONN_QUAL qualifier, DAT_TIMEOUT timeout = kSoon) const;

    const Adapter& adapter;
    DAT_EVD_HANDLE recv;
    DAT_EVD_HANDLE request;
    DAT_EVD_HANDLE conn;
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
};

struct Listener {
    explicit Listener(const Adapter& adapter, DAT_PSP_FLAGS flags = DAT_PSP_CONSUMER_FLAG);
    // The next request, and what is in its event.
    DAT_CR_HANDLE request(DAT_EVENT* event = nullptr) const;

    DAT_EVD_HANDLE evd;
    DAT_CONN_QUAL qualifier = 0;
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
};

// Both connected: `a` asked.
struct Pair {
    explicit Pair(const DAT_EP_ATTR* attr = nullptr); // of a
    Adapter adapter;
    Memory memory{adapter};
    Side a;
    Side b{adapter};
    Listener listener{adapter};
};

// Asks for that port of the adapter.
DAT_RETURN connect_to(DAT_EP_HANDLE ep, DAT_CONN_QUAL qualifier, DAT_TIMEOUT timeout = kSoon);
inline DAT_DTO_COOKIE cookie_of(std::uint64_t number) {
    DAT_DTO_COOKIE cookie;
    cookie.as_64 = number;
    return cookie;
}

// The next event; the test fails where none comes.
DAT_EVENT next(DAT_EVD_HANDLE evd);
// The next event has that number.
DAT_EVENT expect(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number);
// CR-6: a request was accepted whose requester has gone.
void expect_accept_in_vain(DAT_EVD_HANDLE evd);
// The next is a DTO with that cookie and status.
DAT_DTO_COMPLETION_EVENT_DATA expect_dto(DAT_EVD_HANDLE evd, std::uint64_t cookie,
                                         DAT_DTO_COMPLETION_STATUS status = DAT_DTO_SUCCESS);
bool is_empty(DAT_EVD_HANDLE evd);
// Values that are none.
inline DAT_CLOSE_FLAGS close_flag(int value) { return static_cast<DAT_CLOSE_FLAGS>(value); }
inline DAT_SERVICE_TYPE service_type(int value) { return static_cast<DAT_SERVICE_TYPE>(value); }
inline DAT_MEM_TYPE memory_type(int value) { return static_cast<DAT_MEM_TYPE>(value); }
// Names of codes, for messages.
const char* words(DAT_RETURN code);

// The call returns that type, whatever its subtype.
#define EXPECT_TYPE(call, type)                                                                    \
    do {                                                                                           \
        const DAT_RETURN code_ = (call);                                                           \
        cr_assert_eq(DAT_GET_TYPE(code_), static_cast<DAT_UINT32>(type), #call " is %s",           \
                     ::dat::test::words(code_));                                                   \
    } while (false)
#define EXPECT_OK(call) EXPECT_TYPE(call, DAT_SUCCESS)

} // namespace dat::test

#endif
