// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The RDMA devices of this host, as their addresses show them.
#ifndef DAT_LINKS_VERBS_DEVICE_H
#define DAT_LINKS_VERBS_DEVICE_H

#include "net/socket.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string_view>

struct ibv_context;
struct rdma_cm_id;

namespace dat::verbs {

using net::SocketAddress;

// Of a connection's queues, for the provider itself: requests (kMarker, kReady), and
// completions of those.
inline constexpr std::uint32_t kOwnRequests = 2;
inline constexpr std::uint32_t kOwnCompletions = kOwnRequests + 1;

// "mlx5_0/1": of a device, and its port; no interface is called so. Takes no memory.
class DeviceName {
  public:
    DeviceName() = default;
    DeviceName(const char* device, unsigned port) {
        std::snprintf(chars_.data(), chars_.size(), "%s/%u", device, port);
    }
    const char* c_str() const { return chars_.data(); }
    operator std::string_view() const { return c_str(); }

  private:
    std::array<char, 72> chars_{}; // IBV_SYSFS_NAME_MAX, and a port of one byte
};

// A port of a device, and what the device says that it can.
struct Device {
    DeviceName name;
    bool iwarp = false;
    bool siw = false;         // Linux's: tells a reject as ECONNRESET, and takes no fence on a read
    bool rxe = false;         // Linux's: a post is a write(2)
    bool atomics = false;     // on 8 bytes (fetch-add, compare-swap)
    bool immediate = false;   // remote CQ data
    bool windows = false;     // of type 2, bound by requests
    bool invalidates = false; // sends with invalidate
    std::uint32_t segments = 0; // of a request or receive
    std::uint32_t read_segments = 0;
    std::uint32_t operations = 0;      // that a queue holds
    std::uint32_t completions = 0;     // that a completion queue holds
    std::uint32_t shared_receives = 0; // that a shared queue holds; 0: it has none
    std::uint32_t shared_segments = 0; // of one of those
    std::uint32_t reads_in = 0;        // RDMA reads of one connection at once
    std::uint32_t reads_out = 0;
    std::uint64_t message = 0; // bytes

    // What a connection may have: all of it completes in one queue. Requests, and as many
    // receives; receives of a shared queue, beside those requests.
    std::uint32_t queue_size() const {
        return std::min(std::max(operations, kOwnRequests + 1) - kOwnRequests,
                        (std::max(completions, kOwnCompletions + 2) - kOwnCompletions) / 2);
    }
    std::uint32_t shared_size() const {
        const std::uint32_t taken = kOwnCompletions + queue_size();
        return std::min(shared_receives, std::max(completions, taken + 1) - taken);
    }

    // Private data goes as it is, and comes as the connection manager has it, padded with zeros.
    bool raw_data = false;
    // U-63: bytes of private data.
    std::size_t request_data() const;
    std::size_t reply_data() const;
    std::size_t reject_data() const;
};

// Whether the name of a domain is that of a device.
bool is_device_name(std::string_view name);

// The device that `address` is on; none: there is no such device, or it cannot be used.
// Some system calls; nothing but a look at a folder where the host has no device.
std::optional<Device> device_at(const SocketAddress& address);

bool host_has_devices();

// FI_DAT_FORK_SAFE: registered memory stays the parent's on kernels that do not copy it for a child
// of fork(2). Before any memory is registered. 0 or an errno.
int make_fork_safe();

// Logs why devices that this host has cannot be used: no permission, or no file to open. Once a
// process.
void log_unusable();
// Logs that no device has an address by which rdma_cm could find it, or that there is none.
void log_no_address();

// Logs that a call failed, with the limit that is the usual reason and the command that
// mends it. Returns -error.
int log_failure(const char* what, int error);

// --- of this folder ---
void describe(ibv_context* context, std::uint8_t port, Device& device);

} // namespace dat::verbs

#endif
