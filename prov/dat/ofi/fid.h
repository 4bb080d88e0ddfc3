// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// How a C++ object is a libfabric object: its class derives from the C structure
// (fid_ep ...), whose first member is the fid.
#ifndef DAT_OFI_FID_H
#define DAT_OFI_FID_H

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dat::ofi {

// The object behind a fid that is known to be of class `Object`, which derives
// from the C structure `Struct`. Not inlined: a compiler that knew that `f` is part
// of an object would take that object for the C structure alone.
template <class Object, class Struct> __attribute__((noinline)) Object& object_of(struct fid* f) {
    static_assert(offsetof(Struct, fid) == 0);
    return *static_cast<Object*>(reinterpret_cast<Struct*>(f));
}

// fi_open_ops(): `table`, where `name` is the name of it. -FI_ENOSYS otherwise, which is
// no error: extensions of others are probed for in this way.
template <class Table>
int give_table(Table& table, const char* ours, const char* name, std::uint64_t flags,
               void** given) {
    if (!name || std::strcmp(name, ours) != 0 || flags != 0) {
        return -FI_ENOSYS;
    }
    *given = &table;
    return 0;
}

// fi_control() of an object that may be waited for: its wait object, and the kind of it.
template <class Object, class Struct> int control_wait(struct fid* f, int command, void* arg) {
    const Object& object = object_of<Object, Struct>(f);
    switch (command) {
    case FI_GETWAIT:
        if (!object.waitable()) {
            return -FI_ENODATA;
        }
        *static_cast<int*>(arg) = object.wait_fd();
        return 0;
    case FI_GETWAITOBJ:
        *static_cast<fi_wait_obj*>(arg) = object.waitable() ? FI_WAIT_FD : FI_WAIT_NONE;
        return 0;
    default:
        return -FI_ENOSYS;
    }
}

// How many other objects stand on this one: it cannot be closed before them.
class Users {
  public:
    void add() { count_.fetch_add(1, std::memory_order_relaxed); }
    void remove() { count_.fetch_sub(1, std::memory_order_release); }
    int count() const { return count_.load(std::memory_order_acquire); }

  private:
    std::atomic<int> count_{0};
};

} // namespace dat::ofi

#endif
