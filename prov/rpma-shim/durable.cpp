// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See durable.h.
#include "rpma-shim/durable.h"

#include "config.h"
#include "engine/kernel.h"

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

#ifdef HAVE_LIBPMEM
#include <libpmem.h>
#endif

namespace dat::rpma {
namespace {

// One of this process's mappings, as proc(5) has it.
struct Mapping {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    bool shared = false;
    bool of_file = false;

    // False: the line begins no mapping.
    bool read(const std::string& line) {
        char rights[5] = "";
        unsigned long inode = 0;
        if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s %*x %*x:%*x %lu", &begin, &end,
                        rights, &inode) != 4) {
            return false;
        }
        shared = rights[3] == 's';
        of_file = inode != 0;
        return true;
    }
};

// Of the line with a mapping's flags.
bool is_synchronous(const std::string& line) { return line.find(" sf") != std::string::npos; }

} // namespace

Durability durability_of(const void* address, std::size_t size) {
    const kernel::NoCancel while_reading;
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    const std::uintptr_t end = begin + size;
    std::uintptr_t known_to = begin;
    bool direct = true;
    bool inside = false;
    std::ifstream maps("/proc/self/smaps");
    Mapping mapping;
    for (std::string line; known_to < end && std::getline(maps, line);) {
        if (Mapping next; next.read(line)) {
            mapping = next;
            inside = mapping.begin < end && mapping.end > begin;
            if (inside && (!mapping.shared || !mapping.of_file || mapping.begin > known_to)) {
                return Durability::none;
            }
        } else if (inside && line.starts_with("VmFlags:")) {
            direct = direct && is_synchronous(line);
            known_to = mapping.end;
        }
    }
    if (known_to < end) {
        return Durability::none;
    }
    return direct ? Durability::direct : Durability::file;
}

int flush_file(void*, void* address, std::size_t size) {
    static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const std::size_t before = reinterpret_cast<std::uintptr_t>(address) & (page - 1);
    return kernel::uncancelled(msync, static_cast<char*>(address) - before, before + size,
                               MS_SYNC) == 0
               ? 0
               : -errno;
}

int flush_direct(void* context, void* address, std::size_t size) {
#ifdef HAVE_LIBPMEM
    (void)context;
    pmem_persist(address, size);
    return 0;
#else
    return flush_file(context, address, size); // the kernel writes the caches back
#endif
}

} // namespace dat::rpma
