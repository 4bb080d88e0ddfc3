// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Which fi_info a way stands for, and which providers there are.
#ifndef DAT_UTIL_PERF_FABRIC_INFO_H
#define DAT_UTIL_PERF_FABRIC_INFO_H

#include "case.h"
#include "channel.h"

#include <cstdint>
#include <memory>
#include <rdma/fabric.h>
#include <string>
#include <vector>

namespace dat::perf {

struct FreeInfo {
    void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

// What a side needs of libfabric.
struct Wanted {
    const Way& way;
    std::uint64_t caps = 0;                       // FI_MSG, FI_RMA, FI_ATOMIC
    fi_progress progress = FI_PROGRESS_UNSPEC;    // what the provider does by default
    std::string address;                          // of this host
    Address peer;                                 // of the peer's listener; empty: none yet
    std::uint32_t peer_format = FI_FORMAT_UNSPEC; // of `peer`
    bool threads = false;                         // several use the domain at the same time
};

// The first that fits. Throws NotOffered, with libfabric's reason, if there is none.
Info find_info(const Wanted& wanted);

// "0.2" of its provider, as that tells it. Throws NotOffered.
std::string provider_version(const Way& way, const std::string& address);

// Sets what libfabric shall find in this process: the way's variables, and FI_PROVIDER,
// so that nothing else is opened. Before libfabric is used for the first time.
void set_environment(const Way& way);

// The names of all providers that this process can have, sorted, each once.
std::vector<std::string> provider_names();

} // namespace dat::perf

#endif
