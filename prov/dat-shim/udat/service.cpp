// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Service points and connection requests.
#include "dat-shim/cr.h"
#include "dat-shim/evd.h"
#include "dat-shim/service_point.h"
#include "dat-shim/udat/entry.h"

#include <netinet/in.h>

namespace dat::shim::udat {

Return bad_request_evd() { return bad_handle(Sub::invalid_handle_evd_cr); }

ServicePoint* find_point(DAT_HANDLE handle, Kind kind) {
    Shell* const shell = shell_of(handle);
    return shell && shell->is(kind) ? static_cast<ServicePoint*>(shell->object) : nullptr;
}

Return create_point(Ia& ia, const ServicePoint::Asked& asked, DAT_HANDLE* handle,
                    DAT_CONN_QUAL* qualifier) {
    ServicePoint* point = nullptr;
    const Return rc = ServicePoint::create(ia, asked, point);
    if (rc == kSuccess) {
        *handle = point->handle();
        if (qualifier) {
            *qualifier = point->qualifier();
        }
    }
    return rc;
}

Return free_point(DAT_HANDLE handle, Kind kind, Sub what) {
    ServicePoint* const point = find_point(handle, kind);
    return point ? point->free() : bad_handle(what);
}

Return reject(DAT_CR_HANDLE handle, std::span<const std::byte> data) {
    Cr* const cr = lookup<Cr>(handle);
    return cr ? cr->reject(data) : bad_cr();
}

namespace {

Return create_public(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL asked_qualifier, DAT_CONN_QUAL* given,
                     DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS flags, DAT_PSP_HANDLE* psp_handle) {
    Ia* const ia = find_ia(ia_handle);
    if (!ia) {
        return bad_ia();
    }
    ServicePoint::Asked asked;
    asked.kind = Kind::psp;
    asked.qualifier = asked_qualifier;
    asked.evd = lookup<Evd>(evd_handle);
    if (!asked.evd) {
        return bad_request_evd();
    }
    if (!given && !ServicePoint::has_port(asked_qualifier)) {
        return because(bad_argument(2), "a qualifier of %llu, which has no port in its low 16 bits",
                       static_cast<unsigned long long>(asked_qualifier));
    }
    if (flags != DAT_PSP_CONSUMER_FLAG && flags != DAT_PSP_PROVIDER_FLAG) {
        return because(bad_argument(4),
                       "flags of 0x%x: DAT_PSP_CONSUMER_FLAG or DAT_PSP_PROVIDER_FLAG",
                       bits(flags));
    }
    if (!psp_handle) {
        return bad_argument(5);
    }
    asked.makes_endpoints = flags == DAT_PSP_PROVIDER_FLAG;
    return create_point(*ia, asked, psp_handle, given);
}

} // namespace
} // namespace dat::shim::udat

using namespace dat::shim;
using namespace dat::shim::udat;

extern "C" {

DAT_RETURN dat_psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
                          DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
                          DAT_PSP_HANDLE* psp_handle) {
    return answer([&] {
        return create_public(ia_handle, conn_qual, nullptr, evd_handle, psp_flags, psp_handle);
    });
}

DAT_RETURN dat_psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL* conn_qual,
                              DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
                              DAT_PSP_HANDLE* psp_handle) {
    return answer([&] {
        return conn_qual || !find_ia(ia_handle)
                   ? create_public(ia_handle, 0, conn_qual, evd_handle, psp_flags, psp_handle)
                   : bad_argument(2);
    });
}

DAT_RETURN dat_psp_query(DAT_PSP_HANDLE psp_handle, DAT_PSP_PARAM_MASK mask,
                         DAT_PSP_PARAM* psp_param) {
    return answer([&] {
        const ServicePoint* const point = find_point(psp_handle, Kind::psp);
        if (!point) {
            return bad_handle(Sub::invalid_handle_psp);
        }
        if ((mask & ~DAT_PSP_FIELD_ALL) != 0 || !psp_param) {
            return bad_argument(psp_param ? 2 : 3);
        }
        psp_param->ia_handle = point->ia().public_handle();
        psp_param->conn_qual = point->qualifier();
        psp_param->evd_handle = point->asked().evd->handle();
        psp_param->psp_flags =
            point->asked().makes_endpoints ? DAT_PSP_PROVIDER_FLAG : DAT_PSP_CONSUMER_FLAG;
        return kSuccess;
    });
}

DAT_RETURN dat_psp_free(DAT_PSP_HANDLE psp_handle) {
    return answer(
        [&]() -> Return { return free_point(psp_handle, Kind::psp, Sub::invalid_handle_psp); });
}

DAT_RETURN dat_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual, DAT_EP_HANDLE ep_handle,
                          DAT_EVD_HANDLE evd_handle, DAT_RSP_HANDLE* rsp_handle) {
    return answer([&] {
        Ia* const ia = find_ia(ia_handle);
        if (!ia) {
            return bad_ia();
        }
        ServicePoint::Asked asked;
        asked.kind = Kind::rsp;
        asked.qualifier = conn_qual;
        if (!ep_handle) {
            return fail(Type::model_not_supported); // U-30
        }
        asked.ep = lookup<Ep>(ep_handle);
        if (!asked.ep || &asked.ep->ia() != ia) {
            return bad_ep();
        }
        asked.evd = lookup<Evd>(evd_handle);
        if (!asked.evd) {
            return bad_request_evd();
        }
        if (!ServicePoint::has_port(conn_qual) || !rsp_handle) {
            return bad_argument(rsp_handle ? 2 : 5);
        }
        return create_point(*ia, asked, rsp_handle);
    });
}

DAT_RETURN dat_rsp_query(DAT_RSP_HANDLE rsp_handle, DAT_RSP_PARAM_MASK mask,
                         DAT_RSP_PARAM* rsp_param) {
    return answer([&] {
        const ServicePoint* const point = find_point(rsp_handle, Kind::rsp);
        if (!point) {
            return bad_handle(Sub::invalid_handle_rsp);
        }
        if ((mask & ~DAT_RSP_FIELD_ALL) != 0 || !rsp_param) {
            return bad_argument(rsp_param ? 2 : 3);
        }
        rsp_param->ia_handle = point->ia().public_handle();
        rsp_param->conn_qual = point->qualifier();
        rsp_param->evd_handle = point->asked().evd->handle();
        rsp_param->ep_handle = point->asked().ep_handle;
        return kSuccess;
    });
}

DAT_RETURN dat_rsp_free(DAT_RSP_HANDLE rsp_handle) {
    return answer(
        [&]() -> Return { return free_point(rsp_handle, Kind::rsp, Sub::invalid_handle_rsp); });
}

DAT_RETURN dat_cr_query(DAT_CR_HANDLE cr_handle, DAT_CR_PARAM_MASK mask, DAT_CR_PARAM* cr_param) {
    return answer([&] {
        Cr* const cr = lookup<Cr>(cr_handle);
        if (!cr) {
            return bad_cr();
        }
        if ((mask & ~DAT_CR_FIELD_ALL) != 0 || !cr_param) {
            return bad_argument(cr_param ? 2 : 3);
        }
        std::uint64_t port = 0;
        cr_param->remote_ia_address_ptr = const_cast<sockaddr*>(cr->remote_address(port));
        cr_param->remote_port_qual = port;
        cr_param->private_data_size = static_cast<DAT_COUNT>(cr->data().size());
        cr_param->private_data = cr->data_pointer();
        cr_param->local_ep_handle = cr->ep() ? cr->ep()->handle() : DAT_HANDLE_NULL;
        return kSuccess;
    });
}

DAT_RETURN dat_cr_accept(DAT_CR_HANDLE cr_handle, DAT_EP_HANDLE ep_handle,
                         DAT_COUNT private_data_size, const DAT_PVOID private_data) {
    return answer([&] {
        Cr* const cr = lookup<Cr>(cr_handle);
        if (!cr) {
            return bad_cr();
        }
        Ep* const ep = ep_handle ? lookup<Ep>(ep_handle) : nullptr;
        if (ep_handle && !ep) {
            return bad_ep();
        }
        std::span<const std::byte> data;
        if (const Return rc = read_private_data(3, private_data_size, private_data,
                                                Limits::kMaxPrivateData, data)) {
            return rc;
        }
        return cr->accept(ep, data);
    });
}

DAT_RETURN dat_cr_handoff(DAT_CR_HANDLE cr_handle, DAT_CONN_QUAL handoff) {
    return answer([&] {
        Cr* const cr = lookup<Cr>(cr_handle);
        return cr ? cr->hand_off(handoff) : bad_cr();
    });
}

DAT_SHIM_EXPORT(dat_psp_create);
DAT_SHIM_EXPORT(dat_psp_create_any);
DAT_SHIM_EXPORT(dat_psp_query);
DAT_SHIM_EXPORT(dat_psp_free);
DAT_SHIM_EXPORT(dat_rsp_create);
DAT_SHIM_EXPORT(dat_rsp_query);
DAT_SHIM_EXPORT(dat_rsp_free);
DAT_SHIM_EXPORT(dat_cr_query);
DAT_SHIM_EXPORT(dat_cr_accept);
DAT_SHIM_EXPORT(dat_cr_handoff);

} // extern "C"
