// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Addresses as the keys of hash tables.
#ifndef DAT_OFI_ADDRESS_KEY_H
#define DAT_OFI_ADDRESS_KEY_H

#include "engine/random.h"
#include "net/socket.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dat::ofi {

// Host and port; an IPv4 address is the same as its mapped one.
struct AddressKey {
    std::uint64_t host[2];
    std::uint64_t port;

    friend bool operator==(const AddressKey&, const AddressKey&) = default;
};

inline AddressKey key_of(const net::SocketAddress& address) {
    AddressKey key{{}, address.port()};
    const auto bytes = address.bytes();
    std::memcpy(key.host, bytes.data(), sizeof key.host);
    return key;
}

// By multiplication with secret numbers: a peer says what its address is, and does not choose where
// that lies.
class AddressHash {
  public:
    std::size_t operator()(const AddressKey& key) const {
        return (key.host[0] * by_[0] + key.host[1] * by_[1] + key.port * by_[2]) >> 32;
    }

  private:
    std::uint64_t by_[3] = {engine::random_bits() | 1, engine::random_bits() | 1,
                            engine::random_bits() | 1};
};

} // namespace dat::ofi

#endif
