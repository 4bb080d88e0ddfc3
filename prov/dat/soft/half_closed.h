// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What an endpoint keeps of a connection that is over for one side alone: a descriptor of the
// stream that it had. While that is open the other side, which keeps one too, knows that this one
// has not left yet. Under the domain's gate. May include: soft, system headers.
#ifndef DAT_SOFT_HALF_CLOSED_H
#define DAT_SOFT_HALF_CLOSED_H

#include "soft/reactor.h"

namespace dat::soft {

class Domain;
class Endpoint;

class HalfClosed final : private Pollable {
  public:
    // Takes the descriptor. `watching`: this side has left, and the endpoint is to know when the
    // peer has; else the peer is to know when this ends.
    HalfClosed(Domain& domain, Endpoint& endpoint, int fd, bool watching);
    ~HalfClosed();
    HalfClosed(const HalfClosed&) = delete;
    HalfClosed& operator=(const HalfClosed&) = delete;

    bool watching() const { return watching_; }
    // 0, or -errno: it cannot be watched.
    int begin();

  private:
    void ready(std::uint32_t events) override;
    void lost() override;
    void unwatch();

    Domain& domain_;
    Endpoint& endpoint_;
    const int fd_;
    const bool watching_;
    bool watched_ = false;
};

} // namespace dat::soft

#endif
