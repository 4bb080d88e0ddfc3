// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The table of checks, as data.
#include "doctor/looks.h"

#include <array>

namespace dat::doctor {
namespace {

// What test/doctor/faults.sh has a fault for; tested.h is made of it.
struct Tested {
#define DAT_TESTED(id) static constexpr bool id = true;
#include "tested.h"
#undef DAT_TESTED
};

// A check that is no member of Tested has no fault_ID() in test/doctor/faults.sh: write that first.
#define DAT_CHECK(id, what, probe) static_assert(Tested::id);
#include "doctor/checks.def"
#undef DAT_CHECK

constexpr std::array kChecks = {
#define DAT_CHECK(id, what, probe) Check{#id, what, probe, look_##id},
#include "doctor/checks.def"
#undef DAT_CHECK
};

} // namespace

std::span<const Check> checks() { return kChecks; }

const char* word(Status status) {
    constexpr const char* kWords[] = {"ok", "--", "WARN", "FAIL"};
    return kWords[static_cast<int>(status)];
}

} // namespace dat::doctor
