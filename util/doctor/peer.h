// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The peer that --peer names, as far as one can get to it: its name, the route, the answer of
// dat_doctor --serve there, and what that helps to find out.
#ifndef DAT_UTIL_DOCTOR_PEER_H
#define DAT_UTIL_DOCTOR_PEER_H

#include "doctor/beside.h"
#include "doctor/exchange.h"
#include "doctor/facts.h"
#include "doctor/greeting.h"
#include "net/socket.h"

#include <optional>
#include <string>
#include <vector>

namespace dat::doctor {

// A connection to dat_doctor --serve there. `error`: as of connect(2), ETIMEDOUT where nothing
// came for 3 s; EPROTO: something else answers, or too old or new a dat_doctor.
struct Answer {
    int error = 0;
    Greeting greeting;   // where error is 0
    std::size_t mtu = 0; // of the way, as far as the kernel knows
};

// Datagrams of these many bytes that do not come, there and back.
struct Sizes {
    std::vector<std::size_t> tried;
    std::vector<std::size_t> lost_there;
    std::vector<std::size_t> lost_back;
    std::size_t longest = 0; // that comes, where some are lost
    std::string trouble;     // not even small ones come, or nothing could be tried
};

// exchange_few() and exchange_many(), with the log of the other side.
struct Exchange {
    Outcome own;
    std::vector<std::string> others;
    std::string trouble; // of this side, or else of the other one
    std::string others_trouble;
};

class Peer {
  public:
    explicit Peer(Facts& facts);

    const std::string& name() const { return name_; } // HOST
    const std::string& port() const { return port_; }

    // What the name stands for; not valid: nothing, and name_trouble() says why.
    const ofi::SocketAddress& address();
    const std::string& name_trouble() const { return name_trouble_; }
    // The address of this host that the kernel takes; not valid: there is no route.
    const ofi::SocketAddress& source();
    // Of this host, with that source; nullptr: none has it.
    const ofi::LocalAddress* interface();

    const Answer& answer();
    const net::Socket& socket() const { return socket_; }

    const Sizes& sizes();

    const Exchange& few();
    const Exchange& many();

  private:
    Exchange exchange(const char* what,
                      void (*run)(const Beside&, const std::string&, const Report&));
    Facts& facts_;
    std::string name_;
    std::string port_;
    std::string name_trouble_;
    net::Socket socket_;
    std::optional<ofi::SocketAddress> address_;
    std::optional<ofi::SocketAddress> source_;
    std::optional<Answer> answer_;
    std::optional<Sizes> sizes_;
    std::optional<Exchange> few_;
    std::optional<Exchange> many_;
};

} // namespace dat::doctor

#endif
