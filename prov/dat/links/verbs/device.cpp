// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See device.h.
#include "links/verbs/device.h"

#include "base/log.h"
#include "engine/kernel.h"
#include "links/verbs/trailer.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <memory>
#include <rdma/rdma_cma.h>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

namespace dat::verbs {
namespace {

constexpr char kClass[] = "/sys/class/infiniband";
constexpr char kVerbsClass[] = "/sys/class/infiniband_verbs";
constexpr char kFolder[] = "/dev/infiniband/";
constexpr char kManager[] = "/dev/infiniband/rdma_cm";
constexpr std::size_t kIwarpData = 252; // an iWARP connection manager counts in one byte

// The first device; empty: this host has none. librdmacm is not asked before.
std::string first_device() {
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(kClass), closedir);
    while (const dirent* entry = folder ? readdir(folder.get()) : nullptr) {
        if (entry->d_name[0] != '.') {
            return entry->d_name;
        }
    }
    return {};
}

bool may_open(const char* node, int& error) {
    error = access(node, R_OK | W_OK) == 0 ? 0 : errno;
    return error == 0;
}

// The first device file that this process cannot open, and why; empty: there is none.
std::string forbidden(int& error) {
    if (!may_open(kManager, error)) {
        return kManager;
    }
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(kVerbsClass), closedir);
    while (const dirent* entry = folder ? readdir(folder.get()) : nullptr) {
        std::string node = std::string(kFolder) + entry->d_name;
        if (std::strncmp(entry->d_name, "uverbs", 6) == 0 && !may_open(node.c_str(), error)) {
            return node;
        }
    }
    return {};
}

// librdmacm opens a device once for a process, and the kernel takes requests from nobody
// but who has opened it: what a child of fork(2) finds open is of no use to it.
bool is_the_parents() {
    static const pid_t opener = getpid();
    static std::atomic<bool> told{false};
    if (opener == getpid()) {
        return false;
    }
    if (!told.exchange(true)) {
        DAT_WARN(core,
                 "RDMA devices cannot be used in a child of the process that has opened them: "
                 "it has to call execve(2)");
    }
    return true;
}

constexpr std::uint32_t kRxeVendor = 0xffffff; // what Linux's rxe calls its vendor

} // namespace

namespace {

std::size_t most_of(const Device& device, std::size_t frame) {
    return device.iwarp ? kIwarpData : device.raw_data ? frame : frame - kTrailer;
}

} // namespace

std::size_t Device::request_data() const { return most_of(*this, kRequestFrame); }
std::size_t Device::reply_data() const { return most_of(*this, kReplyFrame); }
std::size_t Device::reject_data() const { return most_of(*this, kRejectFrame); }

bool is_device_name(std::string_view name) { return name.find('/') != std::string_view::npos; }

constexpr std::uint32_t kSiwVendor = 0x626d74; // what Linux's siw calls its vendor

void describe(ibv_context* context, std::uint8_t port, Device& device) {
    ibv_device_attr attr{};
    ibv_port_attr port_attr{};
    ibv_query_device(context, &attr);
    ibv_query_port(context, port, &port_attr);
    device.name = DeviceName(ibv_get_device_name(context->device), port);
    device.iwarp = context->device->transport_type == IBV_TRANSPORT_IWARP;
    device.siw = device.iwarp && attr.vendor_id == kSiwVendor;
    device.rxe = !device.iwarp && attr.vendor_id == kRxeVendor;
    device.atomics = !device.iwarp && attr.atomic_cap != IBV_ATOMIC_NONE;
    device.immediate = !device.iwarp;
    constexpr unsigned kWindows = IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
    device.windows = (attr.device_cap_flags & kWindows) != 0;
    device.invalidates = (attr.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS) != 0;
    device.segments = static_cast<std::uint32_t>(std::max(attr.max_sge, 1));
    // A device that does not say takes as many as elsewhere, but on iWARP, where a request for a
    // read names one place (RFC 5040 4.4).
    device.read_segments = attr.max_sge_rd > 0 ? static_cast<std::uint32_t>(attr.max_sge_rd)
                           : device.iwarp      ? 1
                                               : device.segments;
    device.operations = static_cast<std::uint32_t>(std::max(attr.max_qp_wr, 1));
    device.completions = static_cast<std::uint32_t>(std::max(attr.max_cqe, 1));
    if (attr.max_srq > 0 && attr.max_srq_wr > 0 && attr.max_srq_sge > 0) {
        device.shared_receives = static_cast<std::uint32_t>(attr.max_srq_wr);
        device.shared_segments = static_cast<std::uint32_t>(attr.max_srq_sge);
    }
    device.reads_in = static_cast<std::uint32_t>(std::clamp(attr.max_qp_rd_atom, 0, 255));
    device.reads_out = static_cast<std::uint32_t>(std::clamp(attr.max_qp_init_rd_atom, 0, 255));
    device.message = std::min<std::uint64_t>(port_attr.max_msg_sz, UINT32_MAX);
}

std::optional<Device> device_at(const SocketAddress& address) {
    const kernel::NoCancel within;
    int error = 0;
    if (address.loopback() || first_device().empty() || !may_open(kManager, error) ||
        is_the_parents()) {
        return std::nullopt;
    }
    const std::unique_ptr<rdma_event_channel, void (*)(rdma_event_channel*)> channel(
        rdma_create_event_channel(), rdma_destroy_event_channel);
    rdma_cm_id* raw = nullptr;
    if (!channel || rdma_create_id(channel.get(), &raw, nullptr, RDMA_PS_TCP) != 0) {
        return std::nullopt;
    }
    const std::unique_ptr<rdma_cm_id, int (*)(rdma_cm_id*)> id(raw, rdma_destroy_id);
    SocketAddress any_port = address;
    any_port.set_port(0);
    if (rdma_bind_addr(raw, const_cast<sockaddr*>(any_port.get())) != 0 || !raw->verbs) {
        return std::nullopt;
    }
    Device device;
    describe(raw->verbs, raw->port_num, device);
    return device;
}

bool host_has_devices() {
    const kernel::NoCancel within;
    return !first_device().empty();
}

int make_fork_safe() { return kernel::uncancelled(ibv_fork_init); }

void log_unusable() {
    static std::atomic<bool> told{false};
    const kernel::NoCancel within;
    const std::string first = first_device();
    if (first.empty()) {
        return;
    }
    int error = 0;
    const std::string node = forbidden(error);
    if (node.empty() || told.exchange(true)) {
        return;
    }
    if (error == ENOENT) {
        DAT_WARN(core, "RDMA devices (%s) cannot be used: there is no %s; as root: modprobe %s",
                 first.c_str(), node.c_str(), node == kManager ? "rdma_ucm" : "ib_uverbs");
    } else {
        DAT_WARN(core,
                 "RDMA devices (%s) cannot be used: %s: %s; as root: chmod 0666 %s "
                 "/dev/infiniband/uverbs*",
                 first.c_str(), node.c_str(), std::strerror(error), kManager);
    }
}

void log_no_address() {
    const std::string first = first_device();
    int error = 0;
    if (first.empty()) {
        DAT_WARN(core, "FI_DAT_TRANSPORT=verbs: this host has no RDMA device (%s is empty)",
                 kClass);
    } else if (forbidden(error).empty() && !is_the_parents()) { // else that has been said
        DAT_WARN(core,
                 "the RDMA device %s has no fitting IP address: give its network interface "
                 "one (ip addr add ADDRESS/PREFIX dev INTERFACE), and let it be up; "
                 "FI_DAT_TRANSPORT=soft, if it is not to be used",
                 first.c_str());
    }
}

int log_failure(const char* what, int error) {
    rlimit limit{};
    if (error == ENOMEM && getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
        limit.rlim_cur != RLIM_INFINITY) {
        DAT_WARN(domain,
                 "%s: %s; memory that may be locked is limited to %llu KiB: ulimit -l "
                 "unlimited, or `* - memlock unlimited` in /etc/security/limits.conf",
                 what, std::strerror(error),
                 static_cast<unsigned long long>(limit.rlim_cur / 1024));
    } else {
        DAT_WARN(domain, "%s: %s", what, std::strerror(error));
    }
    return -error;
}

} // namespace dat::verbs
