// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// To be loaded before others (LD_PRELOAD): stands in the place of functions that faults.sh wants to
// go wrong. DAT_FAULT says which does; without it, all of them do what they always do.
#include <rdma/fabric.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <string_view>
#include <sys/resource.h>

namespace {

bool wanted(std::string_view fault) {
    const char* const chosen = std::getenv("DAT_FAULT");
    return chosen && chosen == fault;
}

template <class F> F* genuine(const char* name) {
    return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

} // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

// An older libfabric.
EXPORTED std::uint32_t fi_version(void) {
    return wanted("libfabric") ? FI_VERSION(1, 11) : genuine<std::uint32_t()>("fi_version")();
}

// A provider of another version.
EXPORTED int fi_getinfo(std::uint32_t version, const char* node, const char* service,
                        std::uint64_t flags, const fi_info* hints, fi_info** info) {
    const int rc =
        genuine<decltype(fi_getinfo)>("fi_getinfo")(version, node, service, flags, hints, info);
    // dat_doctor asks so where it wants to know the version; what is tried needs the right one.
    const bool asked = rc == 0 && wanted("version") && hints && hints->mode == 0;
    for (fi_info* each = asked ? *info : nullptr; each; each = each->next) {
        each->fabric_attr->prov_version = FI_VERSION(7, 5);
    }
    return rc;
}

// Memory that may be locked: DAT_LOCKED says how much, if it is set.
EXPORTED int getrlimit(__rlimit_resource_t resource, rlimit* limit) noexcept {
    const int rc = genuine<int(__rlimit_resource_t, rlimit*)>("getrlimit")(resource, limit);
    const char* const locked = std::getenv("DAT_LOCKED");
    if (rc == 0 && locked && resource == RLIMIT_MEMLOCK) {
        limit->rlim_max = RLIM_INFINITY;
        limit->rlim_cur = *locked == 'u' ? RLIM_INFINITY : std::strtoul(locked, nullptr, 10);
    }
    return rc;
}

// A kernel, or a filter, that lets nobody have memory of this kind.
EXPORTED int memfd_create(const char* name, unsigned flags) noexcept {
    if (wanted("memory")) {
        errno = EACCES;
        return -1;
    }
    return genuine<int(const char*, unsigned)>("memfd_create")(name, flags);
}
