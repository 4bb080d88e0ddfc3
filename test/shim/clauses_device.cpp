// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What only an adapter with an RDMA device has (applicable.cpp). See pair.h.
#include "pair.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

using namespace dat::test;

namespace {

// The address and the private data of what opens by that name; empty: nothing does.
std::string behind(std::string name) {
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia;
    if (dat_ia_open(name.data(), 8, &async, &ia) != DAT_SUCCESS) {
        return {};
    }
    DAT_IA_ATTR attr;
    DAT_PROVIDER_ATTR provider{};
    EXPECT_OK(dat_ia_query(ia, &async, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_ALL, &provider));
    const auto* const address = reinterpret_cast<const sockaddr_in*>(attr.ia_address_ptr);
    std::string text = std::to_string(ntohl(address->sin_addr.s_addr)) + " " +
                       std::to_string(provider.max_private_data_size);
    EXPECT_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
    return text;
}

// What names an adapter in dat.conf.
struct Entry {
    std::string name, parameters;
};

} // namespace

// RMR-1, IA-12: an adapter whose device has no windows says so, and refuses them.
Test(shim_device, without_windows__it_refuses_them) {
    Adapter adapter;
    DAT_IA_ATTR attr;
    EXPECT_OK(
        dat_ia_query(adapter.ia, &adapter.async, DAT_IA_FIELD_IA_MAX_RMRS, &attr, 0, nullptr));
    cr_assert_eq(attr.max_rmrs, 0);
    DAT_RMR_HANDLE rmr;
    EXPECT_TYPE(dat_rmr_create(adapter.pz, &rmr), DAT_MODEL_NOT_SUPPORTED);
}

// REG-1, IA-6: a device and its port, the interface that it is on, or a name with it in it.
Test(shim_device, a_conf__names_it) {
    const std::string device = place().adapter;
    const Entry good[] = {{"first", device + " 1"},
                          {"any", device + " 0"},
                          {"interface", std::string(place().device) + " 0"},
                          {"ofa-v2-" + device + "-1", ""}};
    const Entry bad[] = {{"second", device + " 2"}, {"other", "mlx5_7 1"}};
    const int fd = memfd_create("dat.conf", 0);
    cr_assert_geq(fd, 0);
    const auto enter = [fd](const Entry& entry) {
        const std::string line = entry.name + (DAT_TEST_API == 20 ? " u2.0" : " u1.2") +
                                 " nonthreadsafe default library.so.2 dapl.2.0 \"" +
                                 entry.parameters + "\" \"\"\n";
        cr_assert_eq(write(fd, line.data(), line.size()), static_cast<ssize_t>(line.size()));
    };
    std::ranges::for_each(good, enter);
    std::ranges::for_each(bad, enter);
    setenv("DAT_OVERRIDE", ("/proc/self/fd/" + std::to_string(fd)).c_str(), 1);
    const std::string itself = behind(device);
    cr_assert_eq(itself.substr(0, itself.find(' ')), std::to_string(place().address));
    for (const Entry& entry : good) {
        cr_assert_eq(behind(entry.name), itself, "%s", entry.name.c_str());
    }
    for (const Entry& entry : bad) {
        cr_assert_eq(behind(entry.name), "", "%s", entry.name.c_str());
    }
    close(fd);
}
