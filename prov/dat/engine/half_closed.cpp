// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See half_closed.h.
#include "engine/half_closed.h"

#include "base/attempt.h"
#include "engine/domain.h"
#include "engine/endpoint.h"
#include "engine/kernel.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <utility>

namespace dat::engine {
namespace {

class KeptStream final : public HalfClosed, private Pollable {
  public:
    // Takes the descriptor.
    KeptStream(Domain& domain, Endpoint& endpoint, int fd, bool watching)
        : HalfClosed(watching), domain_(domain), endpoint_(endpoint), fd_(fd) {}
    ~KeptStream() override {
        unwatch();
        kernel::close(fd_);
    }

    // Nothing of the stream is read here.
    bool begin() override {
        watched_ = watching() && domain_.handshakes().add(fd_, EPOLLRDHUP, *this) == 0;
        return watched_ || !watching();
    }

  private:
    void ready(std::uint32_t) override {
        unwatch();
        endpoint_.peer_left();
    }
    void lost() override { ready(0); }
    void unwatch() {
        if (std::exchange(watched_, false)) {
            domain_.handshakes().remove(fd_, *this);
        }
    }

    Domain& domain_;
    Endpoint& endpoint_;
    const int fd_;
    bool watched_ = false;
};

} // namespace

std::unique_ptr<HalfClosed> keep_stream(Domain& domain, Endpoint& endpoint, int fd, bool watching) {
    const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    std::unique_ptr<HalfClosed> kept;
    if (own >= 0 && !base::attempt([&] {
            kept = std::make_unique<KeptStream>(domain, endpoint, own, watching);
        })) {
        kernel::close(own);
    }
    return kept;
}

} // namespace dat::engine
