// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// dat_doctor --serve: answers dat_doctor --peer of other hosts.
#ifndef DAT_UTIL_DOCTOR_SERVE_H
#define DAT_UTIL_DOCTOR_SERVE_H

#include <string>

namespace dat::doctor {

// Listens on the port of every address, 0 for any, and says on standard output which it is; then
// serves, each client in a process of its own, until it is ended by a signal. Throws
// std::runtime_error where it cannot listen.
[[noreturn]] void serve(const std::string& port);

} // namespace dat::doctor

#endif
