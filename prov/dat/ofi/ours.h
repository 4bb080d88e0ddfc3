// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The functions of fi_ext_dat.h get the objects that a program has. With FI_HOOK those are
// libfabric's own, each around one of ours.
#ifndef DAT_OFI_OURS_H
#define DAT_OFI_OURS_H

#include "base/log.h"
#include "ofi/no_op.h"

#include <cstddef>

namespace dat::ofi {

// All of our tables have this function in this slot, and no others can.
inline bool is_ours(const fid& object) {
    constexpr std::size_t kUpToSlot = offsetof(fi_ops, tostr) + sizeof(fi_ops::tostr);
    return object.ops->size >= kUpToSlot && object.ops->tostr == DAT_NOT_OFFERED(fi_ops, tostr);
}

// Of what is no object (a number, a structure, a handle that may be stale) there is nothing
// to look at.
template <class Argument> bool ours_if_object(Argument argument) {
    if constexpr (requires { argument->fid.ops; }) {
        return !argument || is_ours(argument->fid);
    } else {
        return true;
    }
}

// The function `Call` of fi_ext_dat.h, refused where one of its objects is not ours.
template <auto Call> struct OfOurs;
template <class... Args, int (*Call)(Args...)> struct OfOurs<Call> {
    static int call(Args... args) {
        if (!(ours_if_object(args) && ...)) {
            DAT_WARN(fabric, "a call of fi_ext_dat.h: an object is not dat's own, but one that "
                             "FI_HOOK has put around it, or of another provider");
            return -FI_EINVAL;
        }
        return Call(args...);
    }
};

} // namespace dat::ofi

#endif
