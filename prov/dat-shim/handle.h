// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Handles. A handle is the address of a shell in one arena: whether a value is a handle,
// and of what, is told by looking it up there, so that stale and wild values are refused
// and never followed (GEN-6, U-23). A shell begins with a pointer to the table of
// functions, since a genuine libdat2 above this library calls through it.
#ifndef DAT_SHIM_HANDLE_H
#define DAT_SHIM_HANDLE_H

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace dat::shim {

class Object;

// The values are those of DAT_HANDLE_TYPE, plus one.
enum class Kind : std::uint32_t { none, cr, ep, evd, ia, lmr, psp, pz, rmr, rsp, cno, srq, csp };

struct Shell {
    const void* dispatch = nullptr; // of the API version that the IA was opened with
    Object* object = nullptr;
    // none: free, or of an object that nobody is to find any more. Written last.
    std::atomic<Kind> kind{Kind::none};
    Shell* next = nullptr; // in the list of free ones

    bool is(Kind wanted) const { return kind.load(std::memory_order_acquire) == wanted; }
};

// Where shells are: address space of one piece, mapped from its beginning as shells are taken.
// Nothing is ever unmapped.
struct Arena {
    [[gnu::visibility("hidden")]] static inline std::atomic<std::uintptr_t> base{0};
    // How many are mapped. Written behind `base`, which is never written again.
    [[gnu::visibility("hidden")]] static inline std::atomic<std::size_t> shells{0};
};

// Whether it is the address of a shell, which may be free. Any thread.
inline bool is_in_arena(void* handle) {
    static_assert(std::has_single_bit(sizeof(Shell)));
    const std::size_t shells = Arena::shells.load(std::memory_order_acquire);
    const std::uintptr_t offset =
        reinterpret_cast<std::uintptr_t>(handle) - Arena::base.load(std::memory_order_relaxed);
    // Turned so, what is not aligned is far outside.
    return std::rotr(offset, std::countr_zero(sizeof(Shell))) < shells;
}

// nullptr: no handle of an object that exists. Any thread.
inline Shell* shell_of(void* handle) {
    Shell* shell = static_cast<Shell*>(handle);
    return is_in_arena(handle) && !shell->is(Kind::none) ? shell : nullptr;
}

// A free shell; throws std::bad_alloc. The one that has been free for longest is taken, and
// none of the last thousand that were given back.
Shell* take_shell(const void* dispatch, Kind kind, Object* object);
void give_back_shell(Shell* shell);

} // namespace dat::shim

#endif
