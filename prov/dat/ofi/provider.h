// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The provider as a whole: what libfabric's core gets from it, and the FI_DAT_*
// variables.
#ifndef DAT_OFI_PROVIDER_H
#define DAT_OFI_PROVIDER_H

#include "engine/settings.h"
#include "ofi/interfaces.h"

#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace dat::ofi {

inline constexpr char kProviderName[] = "dat";
extern const std::uint32_t kProviderVersion; // FI_VERSION() of what configure.ac says

// FI_DAT_TRANSPORT
enum class Transport : std::uint8_t {
    automatic, // devices first, then software
    verbs,
    soft,
};

struct Parameters {
    engine::Settings settings;
    bool graceful_close = false; // FI_DAT_CLOSE: what fi_shutdown() does
    Transport transport = Transport::automatic;
    InterfaceFilter interfaces; // FI_DAT_IFACE: those listed
};

// As they were when the provider was loaded.
const Parameters& parameters();

// U-67: FI_DAT_END_GRACE is 0 if it is not set, for a library whose senders are told of success
// when a receive has the message (U-61). Behind initialize(), before anything is opened. Throws
// std::bad_alloc.
void end_without_grace();

// Defines and reads the variables; what is wrong with them, and names that are none of them, are
// lines of the log. False: out of memory. For initialize(), and who only wants to know.
bool read_variables();

// Sets the log sink, reads the variables and returns the structure
// for libfabric's core. Called once, when the library is loaded. nullptr: out of memory.
fi_provider* initialize();

} // namespace dat::ofi

#endif
