// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// fi_ext_dat.h as an interface: which object has which table, and that none has a hole;
// and protection zones.
#include "ofi/domain.h"
#include "ofi/ep.h"
#include "ofi/fabric.h"
#include "ofi/info.h"
#include "ofi/pep.h"
#include "ofi/srx.h"
#include "ofi/zone.h"

#include <criterion/criterion.h>
#include <rdma/fi_cm.h>

#include <cstdlib>
#include <cstring>
#include <memory>

using namespace dat::ofi;

namespace {

template <class Object> struct Close {
    void operator()(Object* object) const { cr_assert_eq(fi_close(&object->fid), 0); }
};
template <class Object> using Fid = std::unique_ptr<Object, Close<Object>>;

Info loopback_info(const fi_info* hints = nullptr) {
    fi_info* found = nullptr;
    cr_assert_eq(getinfo(FI_VERSION(1, 17), "127.0.0.1", nullptr, FI_SOURCE, hints, &found), 0);
    return Info(found);
}

template <class Object, class Call> Fid<Object> open(Call&& call) {
    Object* object = nullptr;
    cr_assert_eq(call(&object), 0);
    return Fid<Object>(object);
}

// Has the table `name` and no other; and every slot of it is filled.
template <class Table> void require_only(fid_t object, const char* name) {
    for (const char* each :
         {FI_DAT_FABRIC_OPS, FI_DAT_PEP_OPS, FI_DAT_DOMAIN_OPS, FI_DAT_EP_OPS, FI_DAT_SRX_OPS}) {
        void* given = nullptr;
        const int rc = fi_open_ops(object, each, 0, &given, nullptr);
        cr_assert_eq(rc, std::strcmp(each, name) == 0 ? 0 : -FI_ENOSYS, "%s", each);
        cr_assert_eq(fi_open_ops(object, each, 1, &given, nullptr), -FI_ENOSYS);
        if (rc == 0) {
            void* slots[sizeof(Table) / sizeof(void*)];
            std::memcpy(slots, given, sizeof slots);
            cr_assert_eq(static_cast<Table*>(given)->size, sizeof(Table));
            for (void* slot : slots) {
                cr_assert_not_null(slot);
            }
        }
    }
}

} // namespace

Test(ofi_ext, each_class_of_object__has_its_table_without_a_hole) {
    const Info info = loopback_info();
    const auto fabric = open<fid_fabric>(
        [&](fid_fabric** f) { return open_fabric(info->fabric_attr, f, nullptr); });
    const auto pep = open<fid_pep>(
        [&](fid_pep** f) { return fi_passive_ep(fabric.get(), info.get(), f, nullptr); });
    const auto domain = open<fid_domain>(
        [&](fid_domain** f) { return fi_domain(fabric.get(), info.get(), f, nullptr); });
    const auto ep =
        open<fid_ep>([&](fid_ep** f) { return fi_endpoint(domain.get(), info.get(), f, nullptr); });
    const auto srx =
        open<fid_ep>([&](fid_ep** f) { return open_srx(domain.get(), nullptr, f, nullptr); });
    require_only<fi_dat_ops_fabric>(&fabric->fid, FI_DAT_FABRIC_OPS);
    require_only<fi_dat_ops_pep>(&pep->fid, FI_DAT_PEP_OPS);
    require_only<fi_dat_ops_domain>(&domain->fid, FI_DAT_DOMAIN_OPS);
    require_only<fi_dat_ops_ep>(&ep->fid, FI_DAT_EP_OPS);
    require_only<fi_dat_ops_srx>(&srx->fid, FI_DAT_SRX_OPS);
}

// FI_HOOK gives a program objects around ours: none of their memory is taken for ours.
Test(ofi_ext, objects_of_others__are_refused) {
    const Info info = loopback_info();
    const auto fabric = open<fid_fabric>(
        [&](fid_fabric** f) { return open_fabric(info->fabric_attr, f, nullptr); });
    const auto pep = open<fid_pep>(
        [&](fid_pep** f) { return fi_passive_ep(fabric.get(), info.get(), f, nullptr); });
    const auto domain = open<fid_domain>(
        [&](fid_domain** f) { return fi_domain(fabric.get(), info.get(), f, nullptr); });
    const auto ep =
        open<fid_ep>([&](fid_ep** f) { return fi_endpoint(domain.get(), info.get(), f, nullptr); });
    fi_ops ops = *ep->fid.ops;
    ops.tostr = nullptr;
    fid_ep around{};
    around.fid.fclass = FI_CLASS_EP;
    around.fid.ops = &ops;
    fi_dat_ep_status status;
    cr_assert_eq(dat_ep_ops.status(&around, &status), -FI_EINVAL);
    cr_assert_eq(dat_ep_ops.reset(&around), -FI_EINVAL);
    cr_assert_eq(dat_ep_ops.disconnect(&around, FI_DAT_ABRUPT), -FI_EINVAL);
    cr_assert_eq(dat_ep_ops.dup_connect(ep.get(), &around, nullptr, 0), -FI_EINVAL);
    cr_assert_eq(dat_pep_ops.reserve(pep.get(), &around), -FI_EINVAL);
    // A table from before the slot that tells them apart.
    ops = *ep->fid.ops;
    ops.size = offsetof(fi_ops, tostr);
    cr_assert_eq(dat_ep_ops.reset(&around), -FI_EINVAL);
    cr_assert_eq(dat_ep_ops.status(ep.get(), &status), 0);
}

// PZ-1: fi_getinfo() carries the keys that the program names, and says no to longer ones.
Test(ofi_ext, auth_keys_in_hints__are_carried_to_the_info) {
    std::uint8_t key[FI_DAT_MAX_AUTH_KEY + 1] = {1, 2, 3};
    const Info hints(fi_allocinfo());
    hints->ep_attr->auth_key = static_cast<std::uint8_t*>(std::malloc(sizeof key));
    hints->domain_attr->auth_key = static_cast<std::uint8_t*>(std::malloc(sizeof key));
    std::memcpy(hints->ep_attr->auth_key, key, sizeof key);
    std::memcpy(hints->domain_attr->auth_key, key, sizeof key);
    hints->ep_attr->auth_key_size = 3;
    hints->domain_attr->auth_key_size = FI_DAT_MAX_AUTH_KEY;
    const Info info = loopback_info(hints.get());
    cr_assert_eq(info->ep_attr->auth_key_size, 3);
    cr_assert_arr_eq(info->ep_attr->auth_key, key, 3);
    cr_assert_eq(info->domain_attr->auth_key_size, FI_DAT_MAX_AUTH_KEY);
    cr_assert_arr_eq(info->domain_attr->auth_key, key, FI_DAT_MAX_AUTH_KEY);
    for (std::size_t* size : {&hints->ep_attr->auth_key_size, &hints->domain_attr->auth_key_size}) {
        const std::size_t before = std::exchange(*size, sizeof key);
        Refusal why;
        cr_assert_not(agrees(*hints, FI_VERSION(1, 17), soft_offering(), why));
        *size = before;
    }
}

Test(ofi_zone, same_key__is_the_same_zone_while_somebody_has_it) {
    Zones zones;
    const ZoneHandle otherwise = std::make_shared<const Zone>();
    const std::uint8_t key[FI_DAT_MAX_AUTH_KEY + 1] = {1};
    const auto find = [&](std::size_t size) { return zones.find("test", key, size, otherwise); };
    cr_assert_eq(find(0), otherwise);
    const ZoneHandle one = find(1);
    cr_assert(one && one != otherwise && one == find(1));
    cr_assert_neq(find(2), one);
    cr_assert_not_null(find(FI_DAT_MAX_AUTH_KEY));
    cr_assert_null(find(FI_DAT_MAX_AUTH_KEY + 1));
    cr_assert_null(zones.find("test", nullptr, 1, otherwise));
}
