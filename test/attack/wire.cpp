// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See wire.h.
#include "wire.h"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace dat::test {

namespace {

constexpr const char* kName = "wire";

[[noreturn]] void skip(const std::string& what) {
    std::printf("SKIP: %s: %s\n", what.c_str(), std::strerror(errno));
    std::fflush(stdout);
    std::_Exit(77);
}

void run(const std::string& command) {
    if (std::system(command.c_str()) != 0)
        skip(command + " (Debian: iproute2)");
}

ifreq request() {
    ifreq request{};
    std::strncpy(request.ifr_name, kName, sizeof request.ifr_name - 1);
    return request;
}

} // namespace

Wire make_wire(const std::string& address) {
    // Without root, as root of a namespace of users.
    if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
        skip("no network namespace can be made");
    Wire wire;
    wire.device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (wire.device < 0)
        skip("/dev/net/tun");
    ifreq device = request();
    device.ifr_flags = IFF_TUN | IFF_NO_PI;
    if (ioctl(wire.device, TUNSETIFF, &device) != 0)
        skip("a device of /dev/net/tun");
    run("ip link set lo up");
    run("ip link set " + std::string(kName) + " mtu 1500 up");
    run("ip addr add " + address + " dev " + kName +
        (address.find(':') == std::string::npos ? "" : " nodad"));
    wire.control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return wire;
}

void set_mtu(const Wire& wire, int mtu) {
    ifreq change = request();
    change.ifr_mtu = mtu;
    if (ioctl(wire.control, SIOCSIFMTU, &change) != 0)
        std::perror("SIOCSIFMTU");
}

void send_wire(int socket, const Wire& wire) {
    char byte = 0;
    iovec data{&byte, 1};
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof wire)] = {};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = room;
    message.msg_controllen = sizeof room;
    cmsghdr* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof wire);
    std::memcpy(CMSG_DATA(head), &wire, sizeof wire);
    sendmsg(socket, &message, 0);
}

bool receive_wire(int socket, Wire& wire) {
    char byte = 0;
    iovec data{&byte, 1};
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof wire)] = {};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = room;
    message.msg_controllen = sizeof room;
    if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1)
        return false;
    const cmsghdr* const head = CMSG_FIRSTHDR(&message);
    if (!head || head->cmsg_len != CMSG_LEN(sizeof wire))
        return false;
    std::memcpy(&wire, CMSG_DATA(head), sizeof wire);
    return true;
}

} // namespace dat::test
