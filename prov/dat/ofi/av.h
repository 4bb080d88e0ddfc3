// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The address vector: a peer's socket address by a number, fi_av(3). A map and a table are the
// same here: numbers from 0 on.
#ifndef DAT_OFI_AV_H
#define DAT_OFI_AV_H

#include "base/list.h"
#include "net/socket.h"
#include "ofi/address_key.h"
#include "ofi/domain.h"
#include "ofi/fid.h"

#include <rdma/fi_domain.h>

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace dat::ofi {

// Who sends to addresses of a vector. Called under the lock.
class AddressUser : public base::Hook<AddressUser> {
  public:
    // What AddressVector::number_of() says of the address is this from now on.
    virtual void named(const net::SocketAddress& address, fi_addr_t number) = 0;
    virtual void removed(fi_addr_t number) = 0;

  protected:
    ~AddressUser() = default;
};

class AddressVector final : public fid_av {
  public:
    AddressVector(Domain& domain, void* context);
    ~AddressVector() { domain_.users.remove(); }

    Users users; // endpoints bound to it
    Domain& domain() { return domain_; }

    // Under the lock, as what follows.
    void add(AddressUser& user) { of_.push(user); }
    // Its number. Throws std::bad_alloc.
    fi_addr_t insert(const net::SocketAddress& address);
    bool remove(fi_addr_t number);
    // nullptr: no such number.
    const net::SocketAddress* find(fi_addr_t number) const {
        return number < entries_.size() && entries_[number].address.valid()
                   ? &entries_[number].address
                   : nullptr;
    }
    // The oldest of the numbers of an address; FI_ADDR_NOTAVAIL: it has none. In the same time
    // however many addresses there are.
    fi_addr_t number_of(const net::SocketAddress& address) const {
        const auto found = numbers_.find(key_of(address));
        return found != numbers_.end() ? found->second.first : FI_ADDR_NOTAVAIL;
    }
    std::size_t size() const { return entries_.size(); }

  private:
    struct Entry {
        net::SocketAddress address; // not valid: free
        // Those of the same address.
        fi_addr_t before = FI_ADDR_NOTAVAIL;
        fi_addr_t next = FI_ADDR_NOTAVAIL;
    };
    struct Numbers {
        fi_addr_t first = FI_ADDR_NOTAVAIL;
        fi_addr_t last = FI_ADDR_NOTAVAIL;
    };

    Domain& domain_;
    std::vector<Entry> entries_;
    std::unordered_map<AddressKey, Numbers, AddressHash> numbers_;
    std::vector<fi_addr_t> free_;
    base::List<AddressUser, AddressUser> of_;
};

inline AddressVector& av_of(fid_av* f) { return *static_cast<AddressVector*>(f); }

// fi_av_open(3).
int open_av(fid_domain* domain, fi_av_attr* attr, fid_av** av, void* context);

} // namespace dat::ofi

#endif
