// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What all DAT objects share: a handle, the IA that they belong to, the Consumer's context.
#ifndef DAT_SHIM_OBJECT_H
#define DAT_SHIM_OBJECT_H

#include "base/list.h"
#include "dat-shim/codes.h"
#include "dat-shim/handle.h"

#include <atomic>
#include <chrono>
#include <cstdint>

namespace dat::shim {

class Ia;

struct Buried; // the list of an IA that an object may be in

class Object : public base::Hook<Buried> {
  public:
    Object(const Object&) = delete;
    Object& operator=(const Object&) = delete;

    Kind kind() const { return kind_; }
    void* handle() const { return shell_; }
    // OBJ-2. An IA is its own.
    Ia& ia() const { return ia_; }

    // CTX-1, CTX-3. The Consumer serializes these (MT-2).
    std::uint64_t context = 0;

    // OBJ-4: who uses it and so keeps it from being freed.
    std::atomic<int> users{0};

  protected:
    // Throws std::bad_alloc. From here on the handle is known.
    Object(Ia& ia, Kind kind, const void* dispatch)
        : ia_(ia), kind_(kind), shell_(take_shell(dispatch, kind, this)) {}
    virtual ~Object() {
        if (shell_) {
            give_back_shell(shell_);
        }
    }

  private:
    friend class Ia;
    // From here on nobody finds it, and it has no handle. Under the lock of the IA.
    void hide() {
        give_back_shell(shell_);
        shell_ = nullptr;
    }

    // From here on nobody finds it; who has done so keeps the handle.
    void conceal() { shell_->kind.store(Kind::none, std::memory_order_relaxed); }

    Ia& ia_;
    const Kind kind_;
    Shell* shell_;
    std::chrono::steady_clock::time_point buried_at_{};
};

// The object behind a handle, nullptr if it is none of that class.
template <class T> [[gnu::always_inline]] inline T* find(void* handle) {
    Shell* shell = static_cast<Shell*>(handle);
    if (!is_in_arena(handle) || !shell->is(T::kKind)) [[unlikely]] {
        return nullptr;
    }
    T* const object = static_cast<T*>(shell->object);
    if (!object) { // no shell that has a kind is without one
        __builtin_unreachable();
    }
    return object;
}

// HND-1: any object; not an IA by its number.
inline Object* find_any(void* handle) {
    Shell* shell = shell_of(handle);
    return shell ? shell->object : nullptr;
}

} // namespace dat::shim

#endif
