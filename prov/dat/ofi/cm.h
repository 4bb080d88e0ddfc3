// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What the connection calls of active and passive endpoints have in common.
#ifndef DAT_OFI_CM_H
#define DAT_OFI_CM_H

#include "net/socket.h"

#include <cstddef>
#include <span>

namespace dat::ofi {

// The answer of fi_getname() and fi_getpeer(): copies what fits, sets the size that
// is needed. 0 or -FI_ETOOSMALL.
int give_address(const net::SocketAddress& address, void* buf, std::size_t* size);

// A socket address whose family says how long it is; not valid: NULL or no IP.
net::SocketAddress read_address(const void* address);

// Private data as it was passed in; `call` is for the log line. 0 or -FI_EINVAL.
int read_private_data(const char* call, const void* param, std::size_t size, std::size_t limit,
                      std::span<const std::byte>& data);

// FI_OPT_CM_DATA_SIZE; everything else -FI_ENOPROTOOPT.
// `data`: bytes.
int get_option(int level, int name, std::size_t data, void* value, std::size_t* size);
int set_option(int level, int name, const void* value, std::size_t size);

} // namespace dat::ofi

#endif
