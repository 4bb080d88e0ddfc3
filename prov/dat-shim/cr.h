// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The connection request (CR-1..CR-9).
#ifndef DAT_SHIM_CR_H
#define DAT_SHIM_CR_H

#include "dat-shim/ep.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace dat::shim {

class ServicePoint;

class Cr final : public Object {
  public:
    static constexpr Kind kKind = Kind::cr;

    // Takes the info.
    Cr(Ia& ia, Info info, std::span<const std::byte> data, std::uint64_t qualifier);

    // CR-2: `ep` is nullptr exactly where the request has an endpoint.
    Return accept(Ep* ep, std::span<const std::byte> data);
    Return reject(std::span<const std::byte> data); // CR-7
    Return hand_off(std::uint64_t qualifier);       // CR-8
    void refuse();                                  // as if nobody had listened

    fid_t request() const { return info_->handle; }
    std::uint64_t qualifier() const { return qualifier_; }
    const sockaddr* remote_address(std::uint64_t& port) const;
    // Writable, and zeroes up to the largest size (PD-5).
    void* data_pointer() { return data_.data(); }
    std::span<const std::byte> data() const { return {data_.data(), size_}; }
    Ep* ep() const { return ep_; }
    void set_ep(Ep* ep) { ep_ = ep; }

  private:
    void settled();

    const Info info_;
    const std::uint64_t qualifier_;
    const std::size_t size_;
    std::array<std::byte, Limits::kMaxPrivateData + 4> data_{};
    Ep* ep_ = nullptr; // of an RSP, or made by the provider
};

} // namespace dat::shim

#endif
