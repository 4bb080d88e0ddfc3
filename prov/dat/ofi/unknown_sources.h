// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Addresses of sources that are in no address vector (FI_SOURCE_ERR), as the numbers by which
// completions name them.
#ifndef DAT_OFI_UNKNOWN_SOURCES_H
#define DAT_OFI_UNKNOWN_SOURCES_H

#include "net/socket.h"
#include "ofi/address_key.h"

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>

namespace dat::ofi {

// Of one completion queue; calls are serialized by the domain's lock.
class UnknownSources {
  public:
    // The number of an address; while there is one it stays the address's. Empty: none, which is 0.
    class Number {
      public:
        Number() = default;
        Number(Number&& other) noexcept
            : of_(std::exchange(other.of_, nullptr)), value_(std::exchange(other.value_, 0)) {}
        Number& operator=(Number&& other) noexcept {
            std::swap(of_, other.of_);
            std::swap(value_, other.value_);
            return *this;
        }
        ~Number() {
            if (of_) {
                of_->give_back(value_);
            }
        }
        std::uint32_t value() const { return value_; }

      private:
        friend class UnknownSources;
        Number(UnknownSources& of, std::uint32_t value) : of_(&of), value_(value) {}

        UnknownSources* of_ = nullptr;
        std::uint32_t value_ = 0;
    };

    // `all_read`: there is no completion in the queue, so what was given back can be used again.
    // Throws std::bad_alloc.
    Number number_of(const net::SocketAddress& address, bool all_read) {
        std::uint32_t& number = numbers_[key_of(address)];
        if (number == 0) {
            if (all_read && given_back_ != 0) {
                places_[last_given_back_ - 1].next = std::exchange(free_, given_back_);
                given_back_ = 0;
            }
            if (free_ == 0) {
                places_.push_back({});
                number = static_cast<std::uint32_t>(places_.size());
            } else {
                number = std::exchange(free_, places_[free_ - 1].next);
            }
            places_[number - 1] = {address, 0, 0};
        }
        ++places_[number - 1].users;
        return {*this, number};
    }

    const net::SocketAddress& address_of(std::uint32_t number) const {
        return places_[number - 1].address;
    }
    std::size_t size() const { return places_.size(); }

  private:
    struct Place {
        net::SocketAddress address;
        std::uint32_t users = 0;
        std::uint32_t next = 0; // where it is in a list
    };

    void give_back(std::uint32_t number) {
        Place& place = places_[number - 1];
        if (--place.users > 0) {
            return;
        }
        numbers_.erase(key_of(place.address));
        if (given_back_ == 0) {
            last_given_back_ = number;
        }
        place.next = std::exchange(given_back_, number);
    }

    std::deque<Place> places_; // by number, from 1 on
    std::unordered_map<AddressKey, std::uint32_t, AddressHash> numbers_;
    std::uint32_t free_ = 0;
    std::uint32_t given_back_ = 0; // completions may still carry these
    std::uint32_t last_given_back_ = 0;
};

} // namespace dat::ofi

#endif
