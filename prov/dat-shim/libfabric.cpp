// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The few functions of libfabric that the provider calls, for a library that is to work
// where libfabric is not installed, whatever FI_PROVIDER says. Hidden: a program that uses
// libfabric as well keeps its own.
#include "dat-shim/log.h"

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include <cctype>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

namespace {

// A copy, or zeroes; nullptr: out of memory.
template <class T> T* copy_of(const T* original) {
    auto* copy = static_cast<T*>(std::calloc(1, sizeof(T)));
    if (copy && original) {
        *copy = *original;
    }
    return copy;
}

// Copies `size` bytes; false: out of memory.
template <class T> bool copy_bytes(T*& pointer, const void* original, std::size_t size) {
    pointer = nullptr;
    if (!original || size == 0) {
        return true;
    }
    pointer = static_cast<T*>(std::malloc(size));
    if (pointer) {
        std::memcpy(pointer, original, size);
    }
    return pointer != nullptr;
}

bool copy_text(char*& pointer, const char* original) {
    return copy_bytes(pointer, original, original ? std::strlen(original) + 1 : 0);
}

bool fill(fi_info& copy, const fi_info* from) {
    copy.next = nullptr;
    copy.handle = from ? from->handle : nullptr;
    copy.src_addr = copy.dest_addr = nullptr;
    copy.nic = nullptr;
    copy.tx_attr = copy_of(from ? from->tx_attr : nullptr);
    copy.rx_attr = copy_of(from ? from->rx_attr : nullptr);
    copy.ep_attr = copy_of(from ? from->ep_attr : nullptr);
    copy.domain_attr = copy_of(from ? from->domain_attr : nullptr);
    copy.fabric_attr = copy_of(from ? from->fabric_attr : nullptr);
    // What the original points to is not the copy's, also where some of that is missing.
    fi_ep_attr from_ep{};
    fi_domain_attr from_domain{};
    fi_fabric_attr from_fabric{};
    if (copy.ep_attr) {
        from_ep = *copy.ep_attr;
        copy.ep_attr->auth_key = nullptr;
    }
    if (copy.domain_attr) {
        from_domain = *copy.domain_attr;
        copy.domain_attr->auth_key = nullptr;
        copy.domain_attr->name = nullptr;
    }
    if (copy.fabric_attr) {
        from_fabric = *copy.fabric_attr;
        copy.fabric_attr->name = copy.fabric_attr->prov_name = nullptr;
    }
    if (!copy.tx_attr || !copy.rx_attr || !copy.ep_attr || !copy.domain_attr || !copy.fabric_attr) {
        return false;
    }
    fi_ep_attr& ep = *copy.ep_attr;
    fi_domain_attr& domain = *copy.domain_attr;
    fi_fabric_attr& fabric = *copy.fabric_attr;
    return copy_bytes(ep.auth_key, from_ep.auth_key, from_ep.auth_key_size) &&
           copy_bytes(domain.auth_key, from_domain.auth_key, from_domain.auth_key_size) &&
           copy_text(domain.name, from_domain.name) && copy_text(fabric.name, from_fabric.name) &&
           copy_text(fabric.prov_name, from_fabric.prov_name) &&
           copy_bytes(copy.src_addr, from ? from->src_addr : nullptr,
                      from ? from->src_addrlen : 0) &&
           copy_bytes(copy.dest_addr, from ? from->dest_addr : nullptr,
                      from ? from->dest_addrlen : 0);
}

} // namespace

extern "C" {

fi_info* fi_dupinfo(const fi_info* info) {
    fi_info* copy = copy_of(info);
    if (copy && !fill(*copy, info)) {
        fi_freeinfo(copy);
        return nullptr;
    }
    return copy;
}

void fi_freeinfo(fi_info* info) {
    while (info) {
        fi_info* const next = info->next;
        if (info->ep_attr) {
            std::free(info->ep_attr->auth_key);
        }
        if (info->domain_attr) {
            std::free(info->domain_attr->auth_key);
            std::free(info->domain_attr->name);
        }
        if (info->fabric_attr) {
            std::free(info->fabric_attr->name);
            std::free(info->fabric_attr->prov_name);
        }
        std::free(info->src_addr);
        std::free(info->dest_addr);
        std::free(info->tx_attr);
        std::free(info->rx_attr);
        std::free(info->ep_attr);
        std::free(info->domain_attr);
        std::free(info->fabric_attr);
        std::free(info);
        info = next;
    }
}

std::uint32_t fi_version(void) { return FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION); }

int fi_log_enabled(const fi_provider*, fi_log_level level, fi_log_subsys) {
    return dat::shim::is_logged(level);
}

void fi_log(const fi_provider*, fi_log_level level, fi_log_subsys, const char* function, int line,
            const char* format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    std::vsnprintf(text, sizeof text, format, args);
    va_end(args);
    dat::shim::log_line(level, function, line, text);
}

int fi_param_define(const fi_provider*, const char*, fi_param_type, const char*, ...) { return 0; }

// Only texts are asked for.
int fi_param_get(fi_provider* provider, const char* name, void* value) {
    std::string variable = "FI_";
    for (const char* text = provider->name; *text; ++text) {
        variable += static_cast<char>(std::toupper(static_cast<unsigned char>(*text)));
    }
    variable += std::string("_") + name;
    char* text = std::getenv(variable.c_str());
    if (!text) {
        return -FI_ENODATA;
    }
    *static_cast<char**>(value) = text;
    return 0;
}

// In log lines about hints, which this library does not get wrong.
char* fi_tostr(const void*, fi_type) {
    static char text[] = "(value)";
    return text;
}

} // extern "C"
