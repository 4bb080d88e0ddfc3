// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What an ibv_context stands for: an RDMA device, or, where there is none, shared memory and TCP.
// None of them goes before the process does, as a program may keep its context.
#ifndef DAT_RPMA_DEVICE_H
#define DAT_RPMA_DEVICE_H

#include "dat-shim/provider.h"

#include <librpma.h>

#include <memory>
#include <string>
#include <sys/socket.h>
#include <utility>

namespace dat::rpma {

class Address {
  public:
    Address() = default;
    // nullptr: none goes by that name and port; `why` is set. `passive`: it is to listen at.
    static std::unique_ptr<Address> resolve(const char* name, const char* port, bool passive,
                                            std::string& why);
    const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
    socklen_t size() const { return size_; }
    bool is_wildcard() const;
    std::string text() const;

  private:
    sockaddr_storage storage_{};
    socklen_t size_ = 0;
};

class Device {
  public:
    // What leads to the address, or has it; nullptr: nothing does, which the log says.
    static Device* find(const Address& address, bool local);
    // What a program's context is; nullptr: no device of that name can be used.
    static Device* of(ibv_context* context);

    ibv_context* context() const { return context_; }
    // Memory and TCP, no RDMA device.
    bool is_soft() const { return soft_; }
    const char* name() const { return name_.c_str(); }
    // The same for the log.
    const char* by() const {
        return soft_ ? "shared memory or TCP, without an RDMA device" : name();
    }
    fid_fabric* fabric() const { return fabric_; }
    // To open a domain with.
    const fi_info& info() const { return *info_; }

    // An info of this device for a connection to the address, or for listening at it. nullptr: the
    // address is not to be had by this device, which the log says.
    shim::Info towards(const Address& peer) const;
    shim::Info at(const Address& local) const;

    Device(shim::Info info, bool soft) : info_(std::move(info)), soft_(soft) {}
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

  private:
    friend struct Devices;

    shim::Info info_;
    const bool soft_;
    std::string name_;
    fid_fabric* fabric_ = nullptr;
    ibv_context* context_ = nullptr;
};

} // namespace dat::rpma

#endif
