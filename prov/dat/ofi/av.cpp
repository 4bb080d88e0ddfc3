// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See av.h.
#include "ofi/av.h"

#include "base/log.h"
#include "base/reserve.h"
#include "ofi/address.h"
#include "ofi/cm.h"
#include "ofi/errors.h"
#include "ofi/no_op.h"
#include "ofi/versions.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

namespace dat::ofi {
namespace {

// A byte for each address (FI_SYNC_ERR).
void set_errors(std::uint64_t flags, void* context, std::size_t i, int error) {
    if ((flags & FI_SYNC_ERR) != 0 && context) {
        static_cast<int*>(context)[i] = error;
    }
}

bool flags_offered(const char* call, std::uint64_t flags) {
    constexpr std::uint64_t kOffered = FI_MORE | FI_SYNC_ERR;
    if ((flags & ~kOffered) == 0) {
        return true;
    }
    DAT_WARN(domain, "%s: flags = 0x%llx; FI_MORE and FI_SYNC_ERR are offered", call,
             static_cast<unsigned long long>(flags));
    return false;
}

bool is_peer(const net::SocketAddress& address) {
    return address.valid() && !address.wildcard() && !address.multicast_or_broadcast() &&
           address.port() != 0;
}

// 1, or 0 and why not in `error`.
int insert_one(AddressVector& av, const char* call, const net::SocketAddress& address,
               fi_addr_t* number, int& error) {
    if (!is_peer(address)) {
        DAT_WARN(domain, "%s: %s is not the address and port of an endpoint", call,
                 address.valid() ? address.text().c_str()
                                 : "something that is no IPv4 or IPv6 "
                                   "socket address");
        error = FI_EINVAL;
    } else {
        error = -no_throw([&] {
            const engine::BiasedLockOwner in(av.domain().biased_lock());
            const fi_addr_t given = av.insert(address);
            if (number) {
                *number = given;
            }
            return 0;
        });
    }
    if (error != 0 && number) {
        *number = FI_ADDR_NOTAVAIL;
    }
    return error == 0 ? 1 : 0;
}

int insert(fid_av* f, const void* addresses, std::size_t count, fi_addr_t* numbers,
           std::uint64_t flags, void* context) {
    if (!flags_offered("fi_av_insert()", flags)) {
        return -FI_EBADFLAGS;
    }
    // They lie side by side, each as long as those of its family.
    const auto* at = static_cast<const std::byte*>(addresses);
    int inserted = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const net::SocketAddress address = read_address(at);
        int error = 0;
        inserted +=
            insert_one(av_of(f), "fi_av_insert()", address, numbers ? numbers + i : nullptr, error);
        set_errors(flags, context, i, error);
        at += address.valid() ? address.size() : sizeof(sockaddr_in);
    }
    return inserted;
}

int insert_service(fid_av* f, const char* node, const char* service, fi_addr_t* number,
                   std::uint64_t flags, void* context) {
    if (!flags_offered("fi_av_insertsvc()", flags)) {
        return -FI_EBADFLAGS;
    }
    if (!node || !service) {
        DAT_WARN(domain, "fi_av_insertsvc(): a node and a service are needed");
        return -FI_EINVAL;
    }
    return no_throw([&] {
        std::string why;
        const auto found = resolve({node, service, AF_UNSPEC, false, false}, why);
        int error = FI_EINVAL;
        int inserted = 0;
        if (found.empty()) {
            DAT_WARN(domain, "fi_av_insertsvc(): %s, %s: %s", node, service, why.c_str());
            if (number) {
                *number = FI_ADDR_NOTAVAIL;
            }
        } else {
            inserted = insert_one(av_of(f), "fi_av_insertsvc()", found.front(), number, error);
        }
        set_errors(flags, context, 0, error);
        return inserted;
    });
}

// "name7" and 3: "name7", "name8", "name9"; an IPv4 address by its last number.
bool count_up(const char* first, std::size_t by, std::string& out) {
    const std::string text(first);
    const std::size_t digits = text.find_last_not_of("0123456789") + 1;
    if (by == 0 || digits == text.size()) {
        out = text;
        return by == 0;
    }
    unsigned long number = 0;
    const char* const end = text.data() + text.size();
    if (std::from_chars(text.data() + digits, end, number).ptr != end) {
        return false;
    }
    std::string counted = std::to_string(number + by);
    const std::size_t width = text.size() - digits;
    if (text[digits] == '0' && counted.size() < width) {
        counted.insert(0, width - counted.size(), '0');
    }
    out = text.substr(0, digits) + counted;
    return true;
}

int insert_symmetric(fid_av* f, const char* node, std::size_t nodes, const char* service,
                     std::size_t services, fi_addr_t* numbers, std::uint64_t flags, void* context) {
    if (!node || !service) {
        DAT_WARN(domain, "fi_av_insertsym(): a node and a service are needed");
        return -FI_EINVAL;
    }
    return no_throw([&] {
        int inserted = 0;
        for (std::size_t i = 0; i < nodes * services; ++i) {
            std::string at;
            std::string which;
            int one = 0;
            fi_addr_t* const number = numbers ? numbers + i : nullptr;
            int* const error = context ? static_cast<int*>(context) + i : nullptr;
            if (count_up(node, i / services, at) && count_up(service, i % services, which)) {
                one = insert_service(f, at.c_str(), which.c_str(), number, flags, error);
            } else if (number) {
                *number = FI_ADDR_NOTAVAIL;
            }
            if (one < 0) {
                return one;
            }
            inserted += one;
        }
        return inserted;
    });
}

int remove(fid_av* f, fi_addr_t* numbers, std::size_t count, std::uint64_t flags) {
    if (flags != 0) {
        DAT_WARN(domain, "fi_av_remove(): flags = 0x%llx; none is offered",
                 static_cast<unsigned long long>(flags));
        return -FI_EBADFLAGS;
    }
    AddressVector& av = av_of(f);
    const engine::BiasedLockOwner in(av.domain().biased_lock());
    int rc = 0;
    for (std::size_t i = 0; i < count; ++i) {
        if (!av.remove(numbers[i])) {
            DAT_WARN(domain, "fi_av_remove(): there is no address with the number %llu",
                     static_cast<unsigned long long>(numbers[i]));
            rc = -FI_EINVAL;
        }
    }
    return rc;
}

int lookup(fid_av* f, fi_addr_t number, void* address, std::size_t* size) {
    AddressVector& av = av_of(f);
    const engine::BiasedLockOwner in(av.domain().biased_lock());
    const net::SocketAddress* const found = av.find(number);
    if (!found) {
        DAT_WARN(domain, "fi_av_lookup(): there is no address with the number %llu",
                 static_cast<unsigned long long>(number));
        return -FI_EINVAL;
    }
    // What does not fit is left out; the size says so.
    const std::size_t needed = found->size();
    std::memcpy(address, found->get(), std::min(*size, needed));
    *size = needed;
    return 0;
}

const char* text(fid_av*, const void* address, char* buf, std::size_t* size) {
    const net::SocketAddress read = read_address(address);
    const char* const scheme = read.family() == AF_INET6 ? "fi_sockaddr_in6" : "fi_sockaddr_in";
    const std::size_t room = *size;
    const int length =
        std::snprintf(buf, room, "%s://%s", scheme, read.valid() ? read.text().c_str() : "");
    *size = static_cast<std::size_t>(length) + 1;
    return buf;
}

int close(fid_t f) {
    AddressVector& av = object_of<AddressVector, fid_av>(f);
    if (av.users.count() > 0) {
        DAT_WARN(domain, "fi_close() of an address vector: %d endpoints are bound to it",
                 av.users.count());
        return -FI_EBUSY;
    }
    delete &av;
    return 0;
}

// fi_av_bind(3): events of insertions, of which there are none.
int bind(fid_t, fid_t, std::uint64_t) {
    DAT_WARN(domain, "fi_av_bind(): addresses are inserted when the call returns (FI_EVENT is not "
                     "offered)");
    return -FI_ENOSYS;
}

fi_ops g_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close,
    .bind = bind,
    .control = DAT_NOT_OFFERED(fi_ops, control),
    .ops_open = DAT_NOT_OFFERED(fi_ops, ops_open),
    .tostr = DAT_NOT_OFFERED(fi_ops, tostr),
    .ops_set = DAT_NOT_OFFERED(fi_ops, ops_set),
};

// What later versions of libfabric have besides stays zero.
constinit fi_ops_av g_av_ops = [] {
    fi_ops_av ops{};
    ops.size = sizeof(fi_ops_av);
    ops.insert = insert;
    ops.insertsvc = insert_service;
    ops.insertsym = insert_symmetric;
    ops.remove = remove;
    ops.lookup = lookup;
    ops.straddr = text;
    ops.av_set = DAT_NOT_OFFERED(fi_ops_av, av_set);
    return ops;
}();

} // namespace

AddressVector::AddressVector(Domain& domain, void* context) : fid_av{}, domain_(domain) {
    fid.fclass = FI_CLASS_AV;
    fid.context = context;
    fid.ops = &g_fid_ops;
    ops = &g_av_ops;
    domain_.users.add();
}

fi_addr_t AddressVector::insert(const net::SocketAddress& address) {
    if (free_.empty()) { // so that remove() takes no memory
        base::reserve_for(entries_, entries_.size() + 1);
        base::reserve_for(free_, entries_.capacity());
    }
    Numbers& numbers = numbers_[key_of(address)];
    fi_addr_t number = entries_.size();
    if (free_.empty()) {
        entries_.emplace_back();
    } else {
        number = free_.back();
        free_.pop_back();
    }
    entries_[number] = {address, numbers.last, FI_ADDR_NOTAVAIL};
    if (numbers.first == FI_ADDR_NOTAVAIL) {
        numbers.first = number;
        of_.each([&](AddressUser& user) { user.named(address, number); });
    } else {
        entries_[numbers.last].next = number;
    }
    numbers.last = number;
    return number;
}

bool AddressVector::remove(fi_addr_t number) {
    if (!find(number)) {
        return false;
    }
    of_.each([&](AddressUser& user) { user.removed(number); });
    const Entry gone = std::exchange(entries_[number], {});
    free_.push_back(number);
    const auto found = numbers_.find(key_of(gone.address));
    Numbers& numbers = found->second;
    (gone.before != FI_ADDR_NOTAVAIL ? entries_[gone.before].next : numbers.first) = gone.next;
    (gone.next != FI_ADDR_NOTAVAIL ? entries_[gone.next].before : numbers.last) = gone.before;
    if (gone.before == FI_ADDR_NOTAVAIL) {
        of_.each([&](AddressUser& user) { user.named(gone.address, gone.next); });
    }
    if (numbers.first == FI_ADDR_NOTAVAIL) {
        numbers_.erase(found);
    }
    return true;
}

int open_av(fid_domain* domain, fi_av_attr* attr, fid_av** av, void* context) {
    const std::uint32_t type = attr ? number_of(attr->type) : std::uint32_t{FI_AV_UNSPEC};
    if (!attr || type > FI_AV_TABLE || attr->name || attr->flags != 0 || attr->rx_ctx_bits != 0) {
        DAT_WARN(domain,
                 "fi_av_open(): type = %u, flags = 0x%llx, rx_ctx_bits = %d, %s name; FI_AV_MAP "
                 "and FI_AV_TABLE are offered, without flags, bits or a name",
                 type, static_cast<unsigned long long>(attr ? attr->flags : 0),
                 attr ? attr->rx_ctx_bits : 0, attr && attr->name ? "a" : "no");
        return -FI_ENOSYS;
    }
    return no_throw([&] {
        auto made = std::make_unique<AddressVector>(domain_of(domain), context);
        if (number_of(attr->type) == FI_AV_UNSPEC) {
            attr->type = FI_AV_TABLE;
        }
        *av = made.release();
        return 0;
    });
}

} // namespace dat::ofi
