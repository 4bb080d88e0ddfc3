// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The context of a domain's device, and what the device tells there of itself, its ports and the
// queues that are made on it (IBA 11.6.3). It is opened for the domain: librdmacm's own is shared
// with whoever else uses that in the process, and an event that one reads the others miss.
#ifndef DAT_LINKS_VERBS_DEVICE_EVENTS_H
#define DAT_LINKS_VERBS_DEVICE_EVENTS_H

#include "engine/reactor.h"

#include <cstdint>

struct ibv_context;

namespace dat::verbs {

class Domain;

class DeviceEvents final : private engine::Pollable {
  public:
    explicit DeviceEvents(Domain& domain) : domain_(domain) {}
    ~DeviceEvents();
    DeviceEvents(const DeviceEvents&) = delete;
    DeviceEvents& operator=(const DeviceEvents&) = delete;

    // Of the device of that context, and its port. 0 or -errno, logged.
    int open(const ibv_context* other, std::uint8_t port);
    ibv_context* context() const { return context_; }

  private:
    void ready(std::uint32_t events) override;
    bool read_one();

    Domain& domain_;
    ibv_context* context_ = nullptr;
    std::uint8_t port_ = 0;
};

} // namespace dat::verbs

#endif
