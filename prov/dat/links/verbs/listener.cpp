// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Listener and connection requests. See connect.h.
#include "base/log.h"
#include "engine/kernel.h"
#include "links/verbs/channel.h"
#include "links/verbs/connect.h"
#include "links/verbs/sigpipe.h"
#include "links/verbs/trailer.h"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <new>
#include <utility>

namespace dat::verbs {
namespace {

void reject_with(rdma_cm_id* id, const Device& device, std::span<const std::byte> data,
                 bool refusal) {
    std::array<std::byte, kRejectFrame> frame;
    if (device.iwarp) {
        const NoSigpipe guard(device.siw);
        kernel::uncancelled(rdma_reject, id, data.data(), static_cast<std::uint8_t>(data.size()));
        return;
    }
    if (device.raw_data) {
        kernel::uncancelled(rdma_reject, id, data.data(), static_cast<std::uint8_t>(data.size()));
        return;
    }
    if (refusal) {
        pad_refusal(frame);
    } else {
        pad(data, frame);
    }
    kernel::uncancelled(rdma_reject, id, frame.data(), static_cast<std::uint8_t>(frame.size()));
}

} // namespace

ConnRequest::ConnRequest(std::shared_ptr<Channel> channel, rdma_cm_id* id,
                         std::unique_ptr<Pending> pending, const Device& device,
                         const CmEvent& event)
    : channel_(std::move(channel)), id_(id), pending_(std::move(pending)), device_(device),
      reads_(event.reads), peer_(address_of(rdma_get_peer_addr(id))),
      local_(address_of(rdma_get_local_addr(id))) {
    const auto frame = event.private_data();
    const auto data = device.iwarp || device.raw_data ? frame : content_of(frame).data;
    private_data_.assign(data.begin(), data.end());
}

ConnRequest::~ConnRequest() { refuse(); }

void ConnRequest::refuse() {
    if (id_) {
        if (!device_.iwarp) { // there destroying it is all that can be told
            reject_with(id_, device_, {}, true);
        }
        const NoSigpipe guard(device_.siw);
        kernel::uncancelled(rdma_destroy_id, id_);
        id_ = nullptr;
    }
}

bool ConnRequest::reject(std::span<const std::byte> private_data) {
    if (!core_.settle(core::ConnRequest::Fate::rejected)) {
        return false;
    }
    reject_with(id_, device_, private_data, false);
    kernel::uncancelled(rdma_destroy_id, std::exchange(id_, nullptr));
    return true;
}

Listener::~Listener() { stop(); }

int Listener::wait_fd() const { return channel_ ? channel_->get()->fd : -1; }

int Listener::bind(const SocketAddress& address) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Channel> channel = channel_;
    if (!channel) {
        channel = std::make_shared<Channel>();
        if (!channel->get()) {
            return -errno;
        }
        const int fd = channel->get()->fd;
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    }
    rdma_cm_id* id = nullptr;
    if (kernel::uncancelled(rdma_create_id, channel->get(), &id, nullptr, RDMA_PS_TCP) != 0) {
        return -errno;
    }
    if (kernel::uncancelled(rdma_bind_addr, id, const_cast<sockaddr*>(address.get())) != 0) {
        const int error = errno;
        kernel::uncancelled(rdma_destroy_id, id);
        return -error;
    }
    if (id_) {
        kernel::uncancelled(rdma_destroy_id, id_);
    }
    if (id->verbs) {
        describe(id->verbs, id->port_num, device_);
        device_.raw_data = raw_data_;
    }
    channel_ = std::move(channel);
    id_ = id;
    name_ = address;
    name_.set_port(ntohs(rdma_get_src_port(id)));
    return 0;
}

int Listener::listen(int backlog) {
    const std::lock_guard lock(mutex_);
    if (!id_) { // the device has been removed
        return -ENODEV;
    }
    return kernel::uncancelled(rdma_listen, id_, backlog) == 0 ? 0 : -errno;
}

void Listener::stop() {
    const std::lock_guard lock(mutex_);
    if (id_) {
        kernel::uncancelled(rdma_destroy_id, id_);
        id_ = nullptr;
    }
}

void Listener::progress() {
    const std::lock_guard lock(mutex_);
    while (channel_) {
        // Acknowledged when it has been dealt with: whoever takes the id away waits for that.
        rdma_cm_event* event = nullptr;
        if (kernel::uncancelled(rdma_get_cm_event, channel_->get(), &event) != 0) {
            return;
        }
        rdma_cm_id* const id = event->id;
        if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
            const CmEvent copy = copy_of(*event);
            id->context = nullptr; // the listener's until now
            kernel::uncancelled(rdma_ack_cm_event, event);
            arrived(id, copy);
            continue;
        }
        if (id != id_ && id->context && event->event != RDMA_CM_EVENT_TIMEWAIT_EXIT) {
            static_cast<ConnRequest::Pending*>(id->context)->gone = true;
        }
        const bool removed = id == id_ && event->event == RDMA_CM_EVENT_DEVICE_REMOVAL;
        kernel::uncancelled(rdma_ack_cm_event, event);
        if (removed) {
            DAT_WARN(ep_ctrl, "%s: nothing listens any more: the RDMA device has been removed",
                     name_.text().c_str());
            kernel::uncancelled(rdma_destroy_id, std::exchange(id_, nullptr));
        }
    }
}

void Listener::arrived(rdma_cm_id* id, const CmEvent& event) {
    Device other;
    const bool known = id_ && id->verbs == id_->verbs && id->port_num == id_->port_num;
    if (!known) {
        describe(id->verbs, id->port_num, other);
        other.raw_data = raw_data_;
    }
    const Device& device = known ? device_ : other;
    std::unique_ptr<ConnRequest> request;
    try {
        auto pending = std::make_unique<ConnRequest::Pending>();
        ConnRequest::Pending* const told = pending.get();
        request = std::make_unique<ConnRequest>(channel_, id, std::move(pending), device, event);
        id->context = told;
    } catch (const std::bad_alloc&) {
        DAT_WARN(ep_ctrl, "a connection request is refused: out of memory");
        kernel::uncancelled(rdma_destroy_id, id);
        return;
    }
    owner_.announce(std::move(request));
    if (!owner_.wants_more() && id_) {
        kernel::uncancelled(rdma_destroy_id, id_);
        id_ = nullptr;
    }
}

} // namespace dat::verbs
