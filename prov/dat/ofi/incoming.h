// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Connection requests and listeners of either kind of domain, behind one face. None of
// this is on the path of data.
#ifndef DAT_OFI_INCOMING_H
#define DAT_OFI_INCOMING_H

#include "base/attempt.h"
#include "base/log.h"
#include "links/iwarp/connect.h"
#include "links/verbs/connect.h"

#include <cerrno>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace dat::ofi {

// iwarp::ConnRequest or verbs::ConnRequest; what the calls do stands there.
class Incoming {
  public:
    explicit Incoming(std::unique_ptr<iwarp::ConnRequest> soft) : soft_(std::move(soft)) {}
    explicit Incoming(std::unique_ptr<verbs::ConnRequest> hard) : hard_(std::move(hard)) {}

    const net::SocketAddress& peer() const { return soft_ ? soft_->peer() : hard_->peer(); }
    const net::SocketAddress& local() const { return soft_ ? soft_->local() : hard_->local(); }
    std::span<const std::byte> private_data() const {
        return soft_ ? soft_->private_data() : hard_->private_data();
    }
    // Of an accept, and of a reject.
    std::size_t max_private_data() const {
        return soft_ ? soft_->max_private_data() : hard_->max_private_data();
    }
    std::size_t max_reject_data() const {
        return soft_ ? soft_->max_private_data() : hard_->max_reject_data();
    }
    bool reject(std::span<const std::byte> data) {
        return soft_ ? soft_->reject(data) : hard_->reject(data);
    }
    // `device`: of the endpoint's domain, nullptr in a software one. Also -ENODEV: the
    // request is one for the other kind of domain.
    int accept(engine::Endpoint& endpoint, verbs::Domain* device, std::span<const std::byte> data) {
        if (soft_ ? device != nullptr : device == nullptr) {
            return -ENODEV;
        }
        return soft_ ? iwarp::accept(endpoint, *soft_, data)
                     : verbs::accept(*device, endpoint, *hard_, data);
    }

  private:
    std::unique_ptr<iwarp::ConnRequest> soft_;
    std::unique_ptr<verbs::ConnRequest> hard_;
};

// iwarp::Listener or verbs::Listener.
class AnyListener {
  public:
    virtual ~AnyListener() = default;
    virtual int bind(const net::SocketAddress& address) = 0;
    virtual int listen(int backlog) = 0;
    virtual void stop() = 0;
    // Leaves the address; the socket, where that keeps it.
    virtual net::Socket release() = 0;
    virtual net::SocketAddress name() const = 0;
    virtual void progress() = 0;
    virtual int wait_fd() const = 0;
};

class AnyListenerOwner {
  public:
    virtual void announce(std::unique_ptr<Incoming> request) = 0;
    virtual bool wants_more() = 0;

  protected:
    ~AnyListenerOwner() = default;
};

// Refused, as it is destroyed, where there is no memory for it.
template <class ConnRequest>
void announce_to(AnyListenerOwner& owner, std::unique_ptr<ConnRequest> request) {
    std::unique_ptr<Incoming> incoming;
    if (base::attempt([&] { incoming = std::make_unique<Incoming>(std::move(request)); })) {
        owner.announce(std::move(incoming));
    } else {
        DAT_WARN(ep_ctrl, "a connection request is refused: out of memory");
    }
}

class SoftListener final : public AnyListener, private iwarp::ListenerOwner {
  public:
    SoftListener(AnyListenerOwner& owner, const engine::Settings& settings)
        : owner_(owner), listener_(*this, settings) {}
    int bind(const net::SocketAddress& address) override { return listener_.bind(address); }
    int listen(int backlog) override { return listener_.listen(backlog); }
    void stop() override { listener_.stop(); }
    net::Socket release() override { return listener_.release(); }
    net::SocketAddress name() const override { return listener_.name(); }
    void progress() override { listener_.progress(); }
    int wait_fd() const override { return listener_.wait_fd(); }

  private:
    void announce(std::unique_ptr<iwarp::ConnRequest> request) override {
        announce_to(owner_, std::move(request));
    }
    bool wants_more() override { return owner_.wants_more(); }

    AnyListenerOwner& owner_;
    iwarp::Listener listener_;
};

class HardListener final : public AnyListener, private verbs::ListenerOwner {
  public:
    HardListener(AnyListenerOwner& owner, bool raw_data)
        : owner_(owner), listener_(*this, raw_data) {}
    int bind(const net::SocketAddress& address) override { return listener_.bind(address); }
    int listen(int backlog) override { return listener_.listen(backlog); }
    void stop() override { listener_.stop(); }
    net::Socket release() override {
        listener_.stop();
        return {};
    }
    net::SocketAddress name() const override { return listener_.name(); }
    void progress() override { listener_.progress(); }
    int wait_fd() const override { return listener_.wait_fd(); }

  private:
    void announce(std::unique_ptr<verbs::ConnRequest> request) override {
        announce_to(owner_, std::move(request));
    }
    bool wants_more() override { return owner_.wants_more(); }

    AnyListenerOwner& owner_;
    verbs::Listener listener_;
};

} // namespace dat::ofi

#endif
