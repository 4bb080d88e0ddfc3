// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What a registry calls in a provider of uDAPL 2.0, here with the registry of the same library;
// under a genuine one see programs.sh.
#include "pair.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

using namespace dat::test;

extern "C" {
void dat_provider_init(const DAT_PROVIDER_INFO* info, const char* instance_data);
void dat_provider_fini(const DAT_PROVIDER_INFO* info);
}

namespace {

DAT_PROVIDER_INFO info_of(const char* name) {
    DAT_PROVIDER_INFO info{};
    std::strncpy(info.ia_name, name, sizeof info.ia_name - 1);
    info.dapl_version_major = 2;
    return info;
}

std::vector<std::string> names() {
    DAT_COUNT count = 0;
    EXPECT_TYPE(dat_registry_list_providers(0, &count, nullptr), DAT_INVALID_PARAMETER);
    std::vector<DAT_PROVIDER_INFO> infos(static_cast<std::size_t>(count));
    std::vector<DAT_PROVIDER_INFO*> pointers;
    for (DAT_PROVIDER_INFO& info : infos) {
        pointers.push_back(&info);
    }
    EXPECT_OK(dat_registry_list_providers(count, &count, pointers.data()));
    std::vector<std::string> all;
    for (const DAT_PROVIDER_INFO& info : infos) {
        all.emplace_back(info.ia_name);
    }
    std::ranges::sort(all);
    return all;
}

} // namespace

// REG-2, REG-3
Test(shim_registry, init__enters_the_name_alone_and_fini_takes_it_out) {
    const std::vector<std::string> before = names();
    std::vector<std::string> with = before;
    with.emplace_back("as-a-provider");
    std::ranges::sort(with);
    const DAT_PROVIDER_INFO info = info_of("as-a-provider");
    for (int again = 0; again < 2; ++again) {
        dat_provider_init(&info, "lo 0");
        cr_assert(names() == with);
        dat_provider_fini(&info);
        cr_assert(names() == before);
    }
}

// V2-4
Test(shim_registry, what_is_not_implemented__says_so) {
    Adapter adapter;
    EXPECT_TYPE(dat_extension_op(adapter.ia, 0x6666), DAT_NOT_IMPLEMENTED);
    cr_assert_eq(DAT_NOT_IMPLEMENTED, 0x3FFF0000);
}
