// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A connection at the local listener: it says what for, and then that it has come in, both within
// a limited time. Under the domain's lock.
#ifndef DAT_LINKS_SHM_GUEST_H
#define DAT_LINKS_SHM_GUEST_H

#include "links/shm/local_listener.h"

#include <optional>

namespace dat::shm {

class LocalListener::Guest final : private engine::Pollable, private engine::Timer {
  public:
    Guest(LocalListener& local_listener, net::Socket socket)
        : local_listener_(local_listener), socket_(std::move(socket)) {}
    ~Guest();

    void start();
    bool is_invited() const { return segment_ ? true : false; }
    std::uint64_t cookie() const { return cookie_; }
    void leave(const char* why);

  private:
    void expired() override { leave("it said nothing"); }
    void lost() override { leave("what it says cannot be waited for any more"); }
    void ready(std::uint32_t events) override;
    void detach();
    void ask(const std::optional<Hello>& hello);
    void come_in();

    LocalListener& local_listener_;
    net::Socket socket_;
    bool watched_ = false;
    // Once it is invited.
    Segment segment_;
    std::uint64_t cookie_ = 0;
    Acquaintance known_;
    std::uint64_t id_ = 0; // of the peering that this becomes
};

} // namespace dat::shm

#endif
