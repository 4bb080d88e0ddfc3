// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What dat_doctor --peer and dat_doctor --serve say to each other: lines over TCP.
//
//   client  dat_doctor 1
//   server  dat_doctor 1 VERSION LIBFABRIC PROVIDER PORT-OF-DATAGRAMS
//   client  there            the server says `got SIZE` for each datagram, until `stop`
//   client  back SIZE PORT   the server sends one of that size, and says `sent ERRNO`
//   client  few, many        both run exchange_few() or exchange_many(); then the server says
//                            `log LINE` for each line of its log, and `end TROUBLE`
#ifndef DAT_UTIL_DOCTOR_GREETING_H
#define DAT_UTIL_DOCTOR_GREETING_H

#include "net/socket.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace dat::doctor {

inline constexpr char kHello[] = "dat_doctor 1";
inline constexpr char kDefaultPort[] = "47471";
inline constexpr std::size_t kLongestLine = 900;

struct Greeting {
    std::string version;   // of the command
    std::string libfabric; // "1.17"
    std::string provider;  // "0.1"; "none"
    std::uint16_t datagrams = 0;
};
std::string line_of(const Greeting& greeting);
// False: it is none.
bool parse(const std::string& line, Greeting& greeting);
// That of this host.
struct Facts;
Greeting own_greeting(Facts& facts);

// Datagrams that nobody may fragment, and that the kernel sends whatever it knows of the way.
// `size` is that of the packet, with the headers of IP and UDP.
class Datagrams {
  public:
    // A socket on the same address of this host as the TCP one, with a port of its own.
    explicit Datagrams(const net::Socket& tcp);

    std::uint16_t port() const { return socket_.local().port(); }
    int fd() const { return socket_.fd(); }
    // To that port of the TCP socket's peer. 0 or an errno; EMSGSIZE: longer than the interface, or
    // the way as a router has told it, takes.
    int send(std::uint16_t port, std::size_t size) const;
    // The size of one that has come from the TCP socket's peer; 0: none.
    std::size_t receive() const;
    // The smallest that every way carries (RFC 791, RFC 8200).
    std::size_t smallest() const;

  private:
    std::size_t headers() const;
    net::SocketAddress peer_;
    net::Socket socket_;
};

// An IPv4 address that is written as an IPv6 one (::ffff:192.0.2.1) as what it is.
net::SocketAddress unmapped(const net::SocketAddress& address);

} // namespace dat::doctor

#endif
