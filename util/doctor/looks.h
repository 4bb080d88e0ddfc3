// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The function behind each check of checks.def.
#ifndef DAT_UTIL_DOCTOR_LOOKS_H
#define DAT_UTIL_DOCTOR_LOOKS_H

#include "doctor/check.h"

namespace dat::doctor {

#define DAT_CHECK(id, what, probe) Finding look_##id(Facts& facts);
#include "doctor/checks.def"
#undef DAT_CHECK

} // namespace dat::doctor

#endif
