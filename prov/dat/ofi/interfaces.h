// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Which interface of this host leads to others, and which the user allows.
#ifndef DAT_OFI_INTERFACES_H
#define DAT_OFI_INTERFACES_H

#include "net/socket.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dat::ofi {

struct LocalAddress;

// What an interface is for, the likeliest way to other hosts first.
enum class InterfaceClass : std::uint8_t {
    way_out, // a default route is on it
    plain,
    inside, // bridge, container or tunnel: its addresses may be those of other hosts too
};

struct InterfaceTraits {
    InterfaceClass kind = InterfaceClass::plain;
    std::uint32_t speed = 0; // Mbit/s; 0: not told
};

// Asks the kernel about interfaces; reads the routes once. A few short system calls for each
// interface. Throws std::bad_alloc.
class InterfaceSurvey {
  public:
    InterfaceSurvey();
    // `flags`: of getifaddrs(3), IFF_*.
    InterfaceTraits traits(const std::string& name, unsigned flags) const;

  private:
    const net::Socket socket_;
    std::vector<std::string> ways_out_;
};

// FI_DAT_IFACE: names, in which * and ? stand for anything as in a shell, and ranges of
// addresses such as 10.0.0.0/8, separated by commas. What stands behind a ^ is excluded; without
// anything before it all else is allowed.
class InterfaceFilter {
  public:
    InterfaceFilter() = default;
    // Throws std::bad_alloc. `bad`: the first part that is neither; it fits nothing.
    explicit InterfaceFilter(std::string_view text, std::string* bad = nullptr);

    bool empty() const { return text_.empty(); }
    const std::string& text() const { return text_; }
    bool allows(const LocalAddress& local) const;
    // The first part, not excluded, that none of these fits; empty: there is none.
    std::string unmatched(const std::vector<LocalAddress>& all) const;

  private:
    struct Part {
        std::string text;
        net::SocketAddress network; // valid: of a range
        unsigned prefix_length = 0;
        bool excluded = false;
    };
    static bool fits(const Part& part, const LocalAddress& local);

    std::string text_;
    std::vector<Part> parts_;
};

} // namespace dat::ofi

#endif
