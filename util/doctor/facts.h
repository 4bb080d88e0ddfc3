// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What more than one check looks at; each is found out when it is first asked for.
#ifndef DAT_UTIL_DOCTOR_FACTS_H
#define DAT_UTIL_DOCTOR_FACTS_H

#include "doctor/child.h"
#include "ofi/address.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dat::doctor {

struct Options {
    std::string peer; // HOST[:PORT]; empty: none
    bool mpi = false;
};

// Where libfabric looks for the provider.
struct ProviderFile {
    std::string folder;          // the one it is in, or is looked for in
    std::string path;            // of libdat-fi.so; empty: it is not there
    bool by_variable = false;    // FI_PROVIDER_PATH says so
    bool is_file = false;        // `folder` is no folder
    bool exists = false;         // `folder` is there
    bool readable = false;       // and this user may look into it
    std::string known_elsewhere; // a folder that has one; empty: none is known
};

// An entry of fi_getinfo().
struct Offer {
    std::string domain;  // "eth0", "mlx5_0/1"
    std::string address; // "192.0.2.1"
    std::string version; // "0.1"
};

class Peer; // peer.h

struct Facts {
    explicit Facts(Options chosen);
    ~Facts();

    const Options options;

    const ProviderFile& provider_file();
    // The file of libfabric that this process has loaded.
    const std::string& libfabric_file();
    // Whether there is any use in asking libfabric for the provider.
    bool provider_usable();
    // What a process finds that asks for the provider by name; facts "offer", "error".
    const Outcome& getinfo();
    const std::vector<Offer>& offers();
    // What reading the variables says: lines of the log.
    const Outcome& variables();
    const std::vector<ofi::LocalAddress>& addresses();
    // Two processes on an address of this host: the client's side, and the server's.
    struct Loopback {
        std::string address;
        Outcome client;
        Outcome server;
    };
    const Loopback& loopback();
    Peer& peer();

  private:
    std::optional<ProviderFile> provider_file_;
    std::optional<std::string> libfabric_file_;
    std::optional<bool> provider_usable_;
    std::optional<Outcome> getinfo_;
    std::optional<std::vector<Offer>> offers_;
    std::optional<Outcome> variables_;
    std::optional<std::vector<ofi::LocalAddress>> addresses_;
    std::optional<Loopback> loopback_;
    std::unique_ptr<Peer> peer_;
};

// "192.0.2.1" of an address: without its port, and without brackets.
std::string host_text(const ofi::SocketAddress& address);

// The value of a variable of the environment; empty where it is not set.
std::string variable(const char* name);

// "a, b and c"
std::string listed(const std::vector<std::string>& words);

// The lines of a file; none where it cannot be read.
std::vector<std::string> lines_of_file(const std::string& path);

} // namespace dat::doctor

#endif
