// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Which names can be opened: those of dat.conf, and those of the network interfaces.
#ifndef DAT_SHIM_REGISTRY_H
#define DAT_SHIM_REGISTRY_H

#include "dat-shim/codes.h"

#include <string>
#include <vector>

namespace dat::shim {

struct Name {
    std::string name;
    unsigned major = 0;
    unsigned minor = 0;
    bool thread_safe = false;
};

// The names for API version `major`, as dat_registry_list_providers tells them: those of
// dat.conf (REG-1) that are for it, then interfaces.
std::vector<Name> list_names(unsigned major);

// IA-6: what offer_of() is to be asked for. A name that is not in dat.conf is an interface
// or RDMA device, or has one in it, in version `offered`.0 and any thread safety.
Return resolve(const std::string& name, unsigned offered, unsigned major, unsigned minor,
               bool thread_safe, std::string& device);

// The error of an IA that cannot be opened since nothing is offered on `device`; the reason has
// the names that there are. `device`: empty, or of the parameters of its entry.
Return no_such_device(const std::string& name, const std::string& device, unsigned major);

// What the parameters of dat.conf name: an interface, an address, a host, or an RDMA device
// and port. Empty: the parameters are.
std::string device_of(const std::string& parameters);

} // namespace dat::shim

#endif
