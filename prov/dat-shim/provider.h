// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The `dat` provider, which is part of this library: it is taken from fi_prov_ini() and no
// libfabric is asked for it.
#ifndef DAT_SHIM_PROVIDER_H
#define DAT_SHIM_PROVIDER_H

#include <rdma/fabric.h>

#include <cstdint>
#include <memory>
#include <string_view>

namespace dat::shim {

struct InfoDeleter {
    void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, InfoDeleter>;

// Loads the provider, which sets where lines of the log go, if nothing has yet. False: out of
// memory.
[[nodiscard]] bool load();

// Hints for what the libraries need: connected endpoints, memory by virtual address, calls from
// any thread, progress without calls. Throws std::bad_alloc.
Info make_hints();

// fi_getinfo() of the provider. nullptr: nothing is offered. Throws std::bad_alloc.
Info get_info(const char* node, std::uint64_t flags, const fi_info* hints);

// Of the first of a list, alone. Throws std::bad_alloc.
Info copy(const fi_info& info);

// Makes an offer what the libraries need: memory has virtual addresses and random keys; a write
// with immediate data takes a receive, as on InfiniBand; what nothing asks for is left out.
void suit(fi_info& info);

// A domain of a device is called after it and a port, one of TCP after its interface.
inline bool is_port(std::string_view domain) { return domain.find('/') != std::string_view::npos; }

// fi_fabric() of the provider. 0 or -FI_E*.
int open_fabric(fi_info& info, fid_fabric** fabric);

} // namespace dat::shim

#endif
