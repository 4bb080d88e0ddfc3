// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A peer, which is a domain of a device; and its memory.
#ifndef DAT_RPMA_PEER_H
#define DAT_RPMA_PEER_H

#include "rpma-shim/device.h"

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_ext_dat.h>

#include <librpma.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace dat::rpma {

// Closes an object of libfabric with its owner.
template <class Fid> class Owned {
  public:
    Owned() = default;
    ~Owned() { reset(); }
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
    Fid* get() const { return fid_; }
    Fid** out() { return &fid_; }
    explicit operator bool() const { return fid_ != nullptr; }
    // 0 or -FI_E*: it is there still, and nobody's.
    int reset() {
        Fid* const fid = fid_;
        fid_ = nullptr;
        return fid ? fi_close(&fid->fid) : 0;
    }

  private:
    Fid* fid_ = nullptr;
};

} // namespace dat::rpma

// It lasts as long as anything of it: a program may delete it before (RP-12).
struct rpma_peer : std::enable_shared_from_this<rpma_peer> {
    explicit rpma_peer(dat::rpma::Device& on) : device(on) {}

    dat::rpma::Device& device;
    dat::rpma::Owned<fid_domain> domain;
    std::shared_ptr<rpma_peer> of_program; // itself, until rpma_peer_delete()
};

struct rpma_mr_local {
    // Whether an operation may use that part of it.
    bool has(std::size_t offset, std::size_t length) const {
        return offset <= size && length <= size - offset;
    }
    void* at(std::size_t offset) const { return static_cast<std::byte*>(base) + offset; }

    std::shared_ptr<rpma_peer> peer;
    void* base;
    std::size_t size;
    int usage;
    bool soft; // of a domain without a device, which pins nothing
    dat::rpma::Owned<fid_mr> mr;
};

struct rpma_mr_remote {
    std::uint64_t address;
    std::uint64_t size;
    std::uint32_t key;
    int usage;
};

#endif
