// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ofi/unknown_sources.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <cstdint>
#include <netinet/in.h>
#include <utility>

using dat::net::SocketAddress;
using dat::ofi::UnknownSources;
using Number = UnknownSources::Number;

namespace {

SocketAddress at_port(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return {reinterpret_cast<const sockaddr*>(&address), sizeof address};
}

} // namespace

Test(ofi_unknown_sources, an_address__has_one_number_for_all_its_users) {
    UnknownSources sources;
    const Number first = sources.number_of(at_port(1), true);
    Number again = sources.number_of(at_port(1), true);
    const Number other = sources.number_of(at_port(2), true);
    cr_assert_neq(first.value(), 0);
    cr_assert_eq(again.value(), first.value());
    cr_assert_neq(other.value(), first.value());
    again = {};
    cr_assert_eq(sources.address_of(first.value()).port(), 1);
    cr_assert_neq(sources.number_of(at_port(3), true).value(), first.value());
    cr_assert_eq(sources.address_of(other.value()).port(), 2);
}

// Completions that nobody has read may carry it.
Test(ofi_unknown_sources, a_number_that_was_given_back__is_used_again_when_all_were_read) {
    UnknownSources sources;
    std::uint32_t number = 0;
    {
        const Number first = sources.number_of(at_port(1), true);
        number = first.value();
    }
    const Number before = sources.number_of(at_port(2), false);
    cr_assert_neq(before.value(), number);
    cr_assert_eq(sources.address_of(number).port(), 1);
    const Number after = sources.number_of(at_port(3), true);
    cr_assert_eq(after.value(), number);
    cr_assert_eq(sources.address_of(number).port(), 3);
    // And the address that had it has a new one.
    cr_assert_neq(sources.number_of(at_port(1), true).value(), number);
}

Test(ofi_unknown_sources, ever_new_addresses__use_few_numbers) {
    UnknownSources sources;
    for (std::uint16_t port = 1; port < 1000; ++port) {
        // Of three at a time, given back in this and in the other order.
        Number first = sources.number_of(at_port(port), port % 7 == 0);
        const Number second = sources.number_of(at_port(port + 1000), false);
        Number third = sources.number_of(at_port(port + 2000), false);
        if (port % 2 == 0) {
            first = {};
            third = {};
        }
        cr_assert_eq(sources.address_of(second.value()).port(), port + 1000);
    }
    cr_assert_leq(sources.size(), 3u * 8u);
}
