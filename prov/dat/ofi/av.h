// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The address vector: a peer's socket address by a number, fi_av(3). A map and a table are the
// same here: numbers from 0 on. May include: ofi, libfabric.
#ifndef DAT_OFI_AV_H
#define DAT_OFI_AV_H

#include "base/list.h"
#include "ofi/domain.h"
#include "ofi/fid.h"
#include "soft/iwarp/socket.h"

#include <rdma/fi_domain.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dat::ofi {

// Who sends to addresses of a vector. Called under the gate.
class AddressUser : public base::Hook<AddressUser> {
  public:
    virtual void inserted(fi_addr_t number, const iwarp::SocketAddress& address) = 0;
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

    // Under the gate, as what follows.
    void add(AddressUser& user) { of_.push(user); }
    // Its number. Throws std::bad_alloc.
    fi_addr_t insert(const iwarp::SocketAddress& address);
    bool remove(fi_addr_t number);
    // nullptr: no such number.
    const iwarp::SocketAddress* find(fi_addr_t number) const {
        return number < entries_.size() && entries_[number].valid() ? &entries_[number] : nullptr;
    }
    std::size_t size() const { return entries_.size(); }

  private:
    Domain& domain_;
    std::vector<iwarp::SocketAddress> entries_; // not valid: free
    std::vector<fi_addr_t> free_;
    base::List<AddressUser, AddressUser> of_;
};

inline AddressVector& av_of(fid_av* f) { return *static_cast<AddressVector*>(f); }

// fi_av_open(3).
int open_av(fid_domain* domain, fi_av_attr* attr, fid_av** av, void* context);

} // namespace dat::ofi

#endif
