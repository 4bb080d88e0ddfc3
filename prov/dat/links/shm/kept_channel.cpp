// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See kept_channel.h.
#include "links/shm/kept_channel.h"

#include "base/attempt.h"

#include <utility>

namespace dat::shm {
namespace {

class KeptChannel final : public engine::HalfClosed, private Party {
  public:
    KeptChannel(engine::Endpoint& endpoint, std::shared_ptr<Channel> channel, bool watching)
        : HalfClosed(watching), endpoint_(endpoint), channel_(std::move(channel)) {}
    ~KeptChannel() override {
        if (std::exchange(attends_, false)) {
            channel_->leave(Attends::kept);
        }
    }

    bool begin() override {
        if (!watching()) {
            return true;
        }
        if (peer_has_left()) {
            return false;
        }
        channel_->attend(*this, Attends::kept);
        attends_ = true;
        return true;
    }

  private:
    bool peer_has_left() const { return channel_->is_over() || channel_->peer_stage() != kThere; }
    void rung() override {
        if (peer_has_left()) {
            peer_gone();
        }
    }
    void peer_gone() override {
        channel_->leave(Attends::kept);
        attends_ = false;
        endpoint_.peer_left();
    }
    void lost() override { peer_gone(); }

    engine::Endpoint& endpoint_;
    const std::shared_ptr<Channel> channel_;
    bool attends_ = false;
};

} // namespace

std::unique_ptr<engine::HalfClosed> keep_channel(engine::Endpoint& endpoint,
                                                 std::shared_ptr<Channel> channel, bool watching) {
    std::unique_ptr<engine::HalfClosed> kept;
    if (!base::attempt([&] {
            kept = std::make_unique<KeptChannel>(endpoint, std::move(channel), watching);
        })) {
        return nullptr;
    }
    return kept;
}

} // namespace dat::shm
