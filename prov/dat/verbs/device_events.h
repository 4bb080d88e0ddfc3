// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What a device tells of itself, and not of a queue pair: that it has failed, or that a
// port has. Read from a context that is opened for that alone: the one that connections
// use belongs to librdmacm, and to whoever else uses that in the process. Such events go
// to each context. May include: soft.
#ifndef DAT_VERBS_DEVICE_EVENTS_H
#define DAT_VERBS_DEVICE_EVENTS_H

#include "soft/reactor.h"

#include <cstdint>

struct ibv_context;

namespace dat::verbs {

class Domain;

class DeviceEvents final : private soft::Pollable {
  public:
    explicit DeviceEvents(Domain& domain) : domain_(domain) {}
    ~DeviceEvents();
    DeviceEvents(const DeviceEvents&) = delete;
    DeviceEvents& operator=(const DeviceEvents&) = delete;

    // Of the device of that context, and its port. 0 or -errno, logged.
    int open(const ibv_context* other, std::uint8_t port);

  private:
    void ready(std::uint32_t events) override;

    Domain& domain_;
    ibv_context* context_ = nullptr;
    std::uint8_t port_ = 0;
};

} // namespace dat::verbs

#endif
