// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Programs know an IA by a number, as the reference's do.
#include "dat-shim/udat/entry.h"

#include <array>
#include <atomic>
#include <mutex>

namespace dat::shim::udat {
namespace {

// IAs by their numbers, from 1. A number is used again as late as possible.
constexpr std::size_t kMostIas = 4095;
constinit std::mutex g_mutex;
constinit std::array<std::atomic<Ia*>, kMostIas + 1> g_ias{};
constinit std::size_t g_last = 0; // guarded by g_mutex

std::size_t number_of(DAT_IA_HANDLE handle) { return reinterpret_cast<std::uintptr_t>(handle); }

} // namespace

Ia* find_ia(DAT_IA_HANDLE handle) {
    const std::size_t number = number_of(handle);
    return number <= kMostIas ? g_ias[number].load() : find<Ia>(handle);
}

bool enter_ia(Ia& ia) {
    const std::lock_guard lock(g_mutex);
    for (std::size_t i = 0; i < kMostIas; ++i) {
        g_last = g_last % kMostIas + 1;
        if (!g_ias[g_last]) {
            ia.set_number(reinterpret_cast<void*>(g_last));
            g_ias[g_last] = &ia;
            return true;
        }
    }
    return false;
}

void leave_ia(const Ia& ia) {
    const std::size_t number = number_of(ia.public_handle());
    if (number <= kMostIas) {
        g_ias[number] = nullptr;
    }
}

} // namespace dat::shim::udat

using namespace dat::shim;
using namespace dat::shim::udat;

extern "C" {

// The number that a program knows becomes the handle that a provider knows, and back.
DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE* ia_handle) {
    return answer([&] {
        const Ia* const ia = find_ia(handle);
        if (!ia) {
            return bad_ia();
        }
        if (!ia_handle) {
            return bad_argument(2);
        }
        *ia_handle = handle == ia->handle() ? ia->public_handle() : ia->handle();
        return kSuccess;
    });
}

} // extern "C"
