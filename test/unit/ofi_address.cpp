// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Local addresses, names and routes, as far as every host has them: its loopback.
#include "ofi/address.h"

#include <criterion/criterion.h>

#include <algorithm>
#include <functional>

using namespace dat::ofi;

namespace {

std::vector<SocketAddress> numeric(const char* node, const char* service, int family = AF_UNSPEC) {
    std::string why;
    return resolve({node, service, family, false, true}, why);
}

SocketAddress address(const char* node, const char* service) {
    const auto found = numeric(node, service);
    cr_assert_eq(found.size(), 1u, "%s", node);
    return found.front();
}

std::vector<LocalAddress> of_this_host() {
    std::vector<LocalAddress> all;
    cr_assert_eq(local_addresses(all), 0);
    return all;
}

} // namespace

Test(ofi_address, loopback__comes_last_and_has_its_subnet) {
    const auto all = of_this_host();
    const auto loopback = [](const LocalAddress& local) { return local.address.loopback(); };
    cr_assert(std::ranges::is_partitioned(all, std::not_fn(loopback)));
    const LocalAddress* lo = find_local(all, address("127.0.0.1", "5"));
    cr_assert_not_null(lo);
    cr_assert_str_eq(lo->subnet.c_str(), "127.0.0.0/8");
    cr_assert_eq(lo->address.port(), 0);
}

Test(ofi_address, any_address_of_the_loopback_subnet__is_local) {
    const auto all = of_this_host();
    cr_assert_eq(find_local(all, address("127.9.9.9", "5")),
                 find_local(all, address("127.0.0.1", "5")));
}

// 192.0.2.0/24, 198.51.100.0/24 and 203.0.113.0/24 are for documentation: one of
// the last addresses of each that no test host has.
Test(ofi_address, address_of_another_host__is_not_local) {
    cr_assert_null(find_local(of_this_host(), address("203.0.113.254", "5")));
}

Test(ofi_address, numeric_host__is_not_looked_up) {
    std::string why;
    cr_assert(resolve({"localhost", "80", AF_UNSPEC, false, true}, why).empty());
    cr_assert(!why.empty());
}

Test(ofi_address, family__is_kept) {
    cr_assert(numeric("127.0.0.1", "80", AF_INET6).empty());
    cr_assert_eq(address("::1", "80").family(), AF_INET6);
    cr_assert_eq(address("127.0.0.1", "80").port(), 80);
}

Test(ofi_address, without_a_node__is_the_wildcard_or_loopback) {
    std::string why;
    const auto passive = resolve({nullptr, "80", AF_INET, true, false}, why);
    cr_assert(passive.size() == 1 && passive.front().wildcard());
    const auto active = resolve({nullptr, "80", AF_INET, false, false}, why);
    cr_assert(active.size() == 1 && active.front().loopback());
}

Test(ofi_address, source_towards_loopback__is_loopback_without_a_port) {
    for (const char* node : {"127.0.0.1", "::1"}) {
        const SocketAddress source = source_towards(address(node, "0"));
        cr_assert(source.valid() && source.loopback(), "%s", node);
        cr_assert_eq(source.port(), 0);
    }
}
