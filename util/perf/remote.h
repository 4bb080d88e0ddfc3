// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Measuring between two hosts: `dat_perf serve` there makes the servers of each case, the clients
// are here.
//
// What the two say to each other goes over one TCP connection, in messages as Peer has them:
//   both     dat_perf FORMAT VERSION LIBFABRIC, and what the form of results depends on
//   client   facts        the server answers lines NAME<tab>VALUE
//   client   check WAY    the server answers `ok VERSION`, or why it does not have it
//   client   case CASE    the server answers `port P TOKEN`, and why not otherwise; then the client
//                         makes the connections between servers and clients to that port, each of
//                         which begins with the token; when the servers have ended, the server says
//                         how, and what each has seen
#ifndef DAT_UTIL_PERF_REMOTE_H
#define DAT_UTIL_PERF_REMOTE_H

#include "case.h"
#include "machine.h"
#include "pair.h"
#include "peer.h"

#include <string>
#include <vector>

namespace dat::perf {

inline constexpr char kDefaultPort[] = "47472";

class Remote {
  public:
    // Throws Failure: nobody answers there, it is no dat_perf, or not the same version.
    explicit Remote(const std::string& host_and_port);

    const std::string& name() const { return name_; }
    // This host's address on the way there.
    std::string own_address() const { return own_address_; }
    // Of libfabric there, if it is not this one; empty: it is.
    const std::string& other_libfabric() const { return other_libfabric_; }
    Facts machine();
    // Why it does not have the way; empty: it does. `version`: of the provider there.
    std::string reason_against(const Way& way, std::string& version);

    // The connections of a case, whose servers have begun there.
    std::vector<Fd> begin(const Case& what);
    // How the servers have ended. Where nothing is heard of them, that is the outcome.
    Outcome end(int limit_s);

  private:
    std::string ask(const std::string& question, int patience_s);
    std::string name_;
    std::string port_;
    Peer peer_;
    std::string own_address_;
    std::string other_libfabric_;
    std::size_t links_ = 0;
};

// The other end: prints a line when it listens, and does not return. One client at a time; others
// are told that it is busy. `address`: what the servers are to be reached by; empty: as the client
// has reached this host.
[[noreturn]] void serve(const std::string& port, const std::string& address);

// A case as text, for the other host, and back. A text that is none, or asks for what may not be
// asked for from elsewhere, is a Failure.
std::string text_of(const Case& what);
Case case_of(const std::string& text);

} // namespace dat::perf

#endif
