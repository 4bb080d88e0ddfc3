// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// libfabric's functions, from a library that is loaded when the first of them
// is called. Loading it runs constructors of PSM libraries that calibrate
// clocks for a quarter of a second, on one processor; Criterion starts its test
// processes one after the other and would pay that for each of them in turn.
// Loaded late, tests pay it at the same time.
#include <rdma/fabric.h>

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

// The function `name` of libfabric; `Function` is its type.
template <class Function> Function* late(const char* name) {
    static void* const library = dlopen("libfabric.so.1", RTLD_NOW | RTLD_GLOBAL);
    void* found = library ? dlsym(library, name) : nullptr;
    if (!found) {
        std::fprintf(stderr, "%s\n", dlerror());
        std::abort();
    }
    return reinterpret_cast<Function*>(found);
}

} // namespace

extern "C" {

int fi_getinfo(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
               const struct fi_info* hints, struct fi_info** info) {
    return late<decltype(fi_getinfo)>("fi_getinfo")(version, node, service, flags, hints, info);
}

void fi_freeinfo(struct fi_info* info) { late<decltype(fi_freeinfo)>("fi_freeinfo")(info); }

struct fi_info* fi_dupinfo(const struct fi_info* info) {
    return late<decltype(fi_dupinfo)>("fi_dupinfo")(info);
}

int fi_fabric(struct fi_fabric_attr* attr, struct fid_fabric** fabric, void* context) {
    return late<decltype(fi_fabric)>("fi_fabric")(attr, fabric, context);
}

const char* fi_strerror(int error) { return late<decltype(fi_strerror)>("fi_strerror")(error); }

char* fi_tostr(const void* data, enum fi_type type) {
    return late<decltype(fi_tostr)>("fi_tostr")(data, type);
}

} // extern "C"
