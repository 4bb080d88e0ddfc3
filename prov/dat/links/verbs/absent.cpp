// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// In place of this folder where it is built without libibverbs and librdmacm: there is
// never a device, so nothing but the question for one is called.
#include "base/log.h"
#include "links/verbs/connect.h"
#include "links/verbs/link.h"
#include "links/verbs/queues.h"

#include <cerrno>

namespace dat::verbs {

class Channel {};
struct Link::Batch {};

std::size_t Device::request_data() const { return 0; }
std::size_t Device::reply_data() const { return 0; }
std::size_t Device::reject_data() const { return 0; }
bool is_device_name(std::string_view name) { return name.find('/') != std::string_view::npos; }
std::optional<Device> device_at(const SocketAddress&) { return std::nullopt; }
bool host_has_devices() { return false; }
void log_unusable() {}
void log_no_address() {
    DAT_WARN(core, "FI_DAT_TRANSPORT=verbs: built without libibverbs and librdmacm "
                   "(--disable-verbs, or they were not found)");
}
int log_failure(const char*, int error) { return -error; }

DeviceEvents::~DeviceEvents() = default;
void DeviceEvents::ready(std::uint32_t) {}
Domain::~Domain() = default;
int Domain::open(const SocketAddress&, bool) { return -ENODEV; }
int Domain::resolve(const SocketAddress&, std::chrono::microseconds) const { return -ENODEV; }
void Domain::progress_connections() {}
void Domain::ready(std::uint32_t) {}
ibv_mr* Domain::register_memory(const void*, void*, std::size_t, const Access&) { return nullptr; }
std::uint32_t Domain::key_of(const ibv_mr*) { return 0; }
int Domain::make_window(const void*, const void*, std::uint32_t, bool, std::uint32_t&) {
    return -ENODEV;
}
void Memory::remove(ibv_mr*) {}
ibv_mr* Memory::region(const void*, std::uint32_t, bool) { return nullptr; }
void* Memory::name_of(const ibv_mr*) { return nullptr; }
void Windows::window_gone(std::uint32_t) {}

int Link::send_plain(const engine::Request&, std::uint64_t, bool) { return ENODEV; }
int Link::write_plain(const engine::Request&, std::uint64_t, bool) { return ENODEV; }
int Link::post_plain(const engine::Receive&, std::uint64_t, const void*) { return ENODEV; }
void Link::transmit_any(std::uint64_t) {}
void Link::transmit_last() {}
SocketAddress Link::local() const { return {}; }
int prepare(Domain&, engine::Endpoint&, bool) { return 0; }
int make_fork_safe() { return ENOSYS; }

ConnRequest::~ConnRequest() = default;
bool ConnRequest::reject(std::span<const std::byte>) { return false; }
int connect(Domain&, engine::Endpoint&, const SocketAddress&, SocketAddress&,
            std::span<const std::byte>, std::optional<std::chrono::microseconds>) {
    return -ENODEV;
}
int accept(Domain&, engine::Endpoint&, ConnRequest&, std::span<const std::byte>) { return -ENODEV; }

Listener::~Listener() = default;
int Listener::bind(const SocketAddress&) { return -ENODEV; }
int Listener::listen(int) { return -ENODEV; }
void Listener::stop() {}
void Listener::progress() {}
int Listener::wait_fd() const { return -1; }

} // namespace dat::verbs
