// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The `dat` provider, which is part of this library: it is taken from fi_prov_ini() and no
// libfabric is asked for it. And the network interfaces that it offers.
// May include: dat-shim, libfabric.
#ifndef DAT_SHIM_DEVICE_H
#define DAT_SHIM_DEVICE_H

#include <rdma/fabric.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dat::shim {

struct InfoDeleter {
    void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, InfoDeleter>;

// What the provider offers on an interface: name of an interface, or address of one.
// Empty: nothing goes by that name. IPv4 comes first.
Info offer_of(const std::string& device);

// The names of all interfaces, each once; loopback last.
std::vector<std::string> interfaces();

// The network interface of an RDMA device and port (sysfs); empty: none.
std::string interface_of_rdma_device(const std::string& device, const std::string& port);

// The one of `interfaces` that the name of an IA has in it as a word, as "ofa-v2-eth0"
// has eth0; the longest if there are several. Empty: none.
std::string interface_in(std::string_view ia_name, const std::vector<std::string>& interfaces);

// fi_fabric() of the provider. 0 or -FI_E*.
int open_fabric(fi_info& info, fid_fabric** fabric);

} // namespace dat::shim

#endif
