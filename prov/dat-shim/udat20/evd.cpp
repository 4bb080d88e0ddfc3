// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Event dispatchers and notification objects. May include: dat-shim, dat headers.
#include "dat-shim/evd.h"
#include "dat-shim/cno.h"
#include "dat-shim/cr.h"
#include "dat-shim/udat20/entry.h"

#include <dat2/dat_ib_extensions.h>

#include <cstring>

namespace dat::shim::udat20 {
namespace {

// The 64 bytes behind an event of an extension.
void translate_extension(const Event::Dto& dto, DAT_EVENT& out) {
    auto& extension = reinterpret_cast<DAT_IB_EXTENSION_EVENT_DATA&>(out.event_extension_data);
    std::memset(static_cast<void*>(&extension), 0, sizeof extension);
    switch (dto.operation) {
    case Operation::fetch_add:
        extension.type = DAT_IB_FETCH_AND_ADD;
        break;
    case Operation::compare_swap:
        extension.type = DAT_IB_CMP_AND_SWAP;
        break;
    case Operation::write_immediate:
        extension.type = DAT_IB_RDMA_WRITE_IMMED;
        break;
    default:
        extension.type = DAT_IB_RDMA_WRITE_IMMED_DATA;
        extension.val.immed.data = dto.immediate;
        break;
    }
    extension.status = dto.status == 0 ? DAT_OP_SUCCESS : DAT_IB_OP_ERR;
}

void translate_request(const Event::Request& request, DAT_EVENT& out) {
    DAT_CR_ARRIVAL_EVENT_DATA& data = out.event_data.cr_arrival_event_data;
    data.sp_handle.psp_handle = request.service_point; // U-52
    data.local_ia_address_ptr = const_cast<sockaddr*>(request.cr->ia().address());
    data.conn_qual = request.cr->qualifier();
    data.cr_handle = request.cr->handle();
    data.truncate_flag = DAT_FALSE; // PD-6
}

} // namespace

void translate_rare(const Event& event, DAT_EVENT& out) {
    switch (event.number) {
    case Number::ib_dto: {
        DAT_DTO_COMPLETION_EVENT_DATA& dto = out.event_data.dto_completion_event_data;
        dto.ep_handle = event.dto.ep;
        dto.user_cookie.as_64 = event.dto.cookie;
        dto.status = static_cast<DAT_DTO_COMPLETION_STATUS>(event.dto.status);
        dto.transfered_length = event.dto.length;
        dto.operation = static_cast<DAT_DTOS>(event.dto.operation);
        dto.rmr_context = 0;
        translate_extension(event.dto, out);
        break;
    }
    case Number::rmr_bind_completion: {
        DAT_RMR_BIND_COMPLETION_EVENT_DATA& bind = out.event_data.rmr_completion_event_data;
        bind.rmr_handle = event.bind.rmr;
        bind.user_cookie.as_64 = event.bind.cookie;
        bind.status = static_cast<DAT_DTO_COMPLETION_STATUS>(event.bind.status);
        break;
    }
    case Number::connection_request:
        translate_request(event.request, out);
        break;
    case Number::software:
        out.event_data.software_event_data.pointer = event.pointer;
        break;
    case Number::async_error_ep_broken:
    case Number::async_error_provider_internal_error:
        out.event_data.asynch_error_event_data.dat_handle = event.async.object;
        out.event_data.asynch_error_event_data.reason = event.async.reason;
        break;
    default: {
        DAT_CONNECTION_EVENT_DATA& connection = out.event_data.connect_event_data;
        connection.ep_handle = event.connection.ep;
        connection.private_data_size = static_cast<DAT_COUNT>(event.connection.size);
        connection.private_data = event.connection.data;
        break;
    }
    }
}

namespace {

// EVD-3 is for its users; here it may be any EVD.
DAT_RETURN bad_evd() { return fail(Type::invalid_handle); }
DAT_RETURN bad_cno() { return bad_handle(Sub::invalid_handle_cno); }

// A CNO that may be none; false: the handle is bad.
bool find_cno(DAT_CNO_HANDLE handle, Cno*& cno) {
    cno = handle ? lookup<Cno>(handle) : nullptr;
    return cno || !handle;
}

Cno::Agent agent_of(const DAT_OS_WAIT_PROXY_AGENT& agent) {
    return {agent.instance_data, agent.proxy_agent_func};
}

} // namespace
} // namespace dat::shim::udat20

using namespace dat::shim;
using namespace dat::shim::udat20;

extern "C" {

DAT_RETURN dat_evd_create(DAT_IA_HANDLE ia_handle, DAT_COUNT evd_min_qlen,
                          DAT_CNO_HANDLE cno_handle, DAT_EVD_FLAGS evd_flags,
                          DAT_EVD_HANDLE* evd_handle) {
    Ia* const ia = find_ia(ia_handle);
    Cno* cno = nullptr;
    if (!ia) {
        return bad_handle(Sub::invalid_handle_ia);
    }
    if (!find_cno(cno_handle, cno)) {
        return bad_cno();
    }
    if (!evd_handle) {
        return bad_argument(5);
    }
    return guarded([&] {
        Evd* evd = nullptr;
        const Return rc =
            Evd::create(*ia, evd_min_qlen, cno, static_cast<std::uint32_t>(evd_flags), evd);
        if (rc == kSuccess) {
            *evd_handle = evd->handle();
        }
        return rc;
    });
}

DAT_RETURN dat_evd_query(DAT_EVD_HANDLE evd_handle, DAT_EVD_PARAM_MASK mask,
                         DAT_EVD_PARAM* evd_param) {
    Evd* const evd = lookup<Evd>(evd_handle);
    if (!evd) {
        return bad_evd();
    }
    if ((mask & ~DAT_EVD_FIELD_ALL) != 0 || !evd_param) {
        return bad_argument(evd_param ? 2 : 3);
    }
    Cno* const cno = evd->cno();
    evd_param->ia_handle = evd->ia().public_handle();
    evd_param->evd_qlen = evd->length();
    evd_param->evd_state = static_cast<DAT_EVD_STATE>(evd->state());
    evd_param->cno_handle = cno ? cno->handle() : DAT_HANDLE_NULL;
    evd_param->evd_flags = static_cast<DAT_EVD_FLAGS>(evd->streams());
    return DAT_SUCCESS;
}

DAT_RETURN dat_evd_free(DAT_EVD_HANDLE evd_handle) {
    Evd* const evd = lookup<Evd>(evd_handle);
    return evd ? guarded([&] { return evd->free(); }) : bad_evd();
}

DAT_RETURN dat_evd_resize(DAT_EVD_HANDLE evd_handle, DAT_COUNT evd_min_qlen) {
    Evd* const evd = lookup<Evd>(evd_handle);
    return evd ? guarded([&] { return evd->resize(evd_min_qlen); }) : bad_evd();
}

DAT_RETURN dat_evd_modify_cno(DAT_EVD_HANDLE evd_handle, DAT_CNO_HANDLE cno_handle) {
    Evd* const evd = lookup<Evd>(evd_handle);
    Cno* cno = nullptr;
    if (!evd) {
        return bad_evd();
    }
    return find_cno(cno_handle, cno) ? guarded([&] { return evd->set_cno(cno); }) : bad_cno();
}

DAT_RETURN dat_evd_enable(DAT_EVD_HANDLE evd_handle) {
    Evd* const evd = lookup<Evd>(evd_handle);
    return evd ? guarded([&] { return evd->enable(true); }) : bad_evd();
}

DAT_RETURN dat_evd_disable(DAT_EVD_HANDLE evd_handle) {
    Evd* const evd = lookup<Evd>(evd_handle);
    return evd ? guarded([&] { return evd->enable(false); }) : bad_evd();
}

DAT_RETURN dat_evd_set_unwaitable(DAT_EVD_HANDLE evd_handle) {
    Evd* const evd = lookup<Evd>(evd_handle);
    return evd ? guarded([&] { return evd->set_waitable(false); }) : bad_evd();
}

DAT_RETURN dat_evd_clear_unwaitable(DAT_EVD_HANDLE evd_handle) {
    Evd* const evd = lookup<Evd>(evd_handle);
    return evd ? guarded([&] { return evd->set_waitable(true); }) : bad_evd();
}

DAT_RETURN dat_evd_wait(DAT_EVD_HANDLE evd_handle, DAT_TIMEOUT timeout, DAT_COUNT threshold,
                        DAT_EVENT* event, DAT_COUNT* n_more_events) {
    Evd* const evd = lookup<Evd>(evd_handle);
    if (!evd) {
        return bad_evd();
    }
    if (!event || !n_more_events) {
        return bad_argument(event ? 5 : 4);
    }
    return guarded([&] {
        Event got;
        const Return rc = evd->wait(timeout, threshold, got, *n_more_events);
        if (rc == kSuccess) {
            translate(got, evd_handle, *event);
        }
        return rc;
    });
}

DAT_RETURN dat_evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT* event) {
    Evd* const evd = lookup<Evd>(evd_handle);
    if (!evd) [[unlikely]] {
        return bad_evd();
    }
    if (!event) [[unlikely]] {
        return bad_argument(2);
    }
    return guarded([&] {
        Event got;
        const Return rc = evd->dequeue(got);
        if (rc == kSuccess) {
            translate(got, evd_handle, *event);
            return kSuccess;
        }
        // The one code without a class bit: programs that poll compare it whole.
        return type_of(rc) == Type::queue_empty ? Return{DAT_QUEUE_EMPTY} : rc;
    });
}

DAT_RETURN dat_evd_post_se(DAT_EVD_HANDLE evd_handle, const DAT_EVENT* event) {
    Evd* const evd = lookup<Evd>(evd_handle);
    if (!evd) {
        return bad_evd();
    }
    if (!event || event->event_number != DAT_SOFTWARE_EVENT) { // EVD-33
        return bad_argument(2);
    }
    return guarded(
        [&] { return evd->post_software(event->event_data.software_event_data.pointer); });
}

DAT_RETURN dat_cno_create(DAT_IA_HANDLE ia_handle, DAT_OS_WAIT_PROXY_AGENT agent,
                          DAT_CNO_HANDLE* cno_handle) {
    Ia* const ia = find_ia(ia_handle);
    if (!ia) {
        return bad_handle(Sub::invalid_handle_ia);
    }
    if (!cno_handle) {
        return bad_argument(3);
    }
    return guarded([&] {
        Cno* cno = nullptr;
        const Return rc = Cno::create(*ia, agent_of(agent), cno);
        *cno_handle = cno->handle();
        return rc;
    });
}

DAT_RETURN dat_cno_fd_create(DAT_IA_HANDLE ia_handle, DAT_FD* file_descriptor,
                             DAT_CNO_HANDLE* cno_handle) {
    Ia* const ia = find_ia(ia_handle);
    if (!ia) {
        return bad_handle(Sub::invalid_handle_ia);
    }
    if (!file_descriptor || !cno_handle) {
        return bad_argument(file_descriptor ? 3 : 2);
    }
    return guarded([&] {
        Cno* cno = nullptr;
        const Return rc = Cno::create_with_descriptor(*ia, *file_descriptor, cno);
        if (rc == kSuccess) {
            *cno_handle = cno->handle();
        }
        return rc;
    });
}

DAT_RETURN dat_cno_modify_agent(DAT_CNO_HANDLE cno_handle, DAT_OS_WAIT_PROXY_AGENT agent) {
    Cno* const cno = lookup<Cno>(cno_handle);
    return cno ? guarded([&] { return cno->set_agent(agent_of(agent)); }) : bad_cno();
}

// The mask's values overlap, so any of them is taken.
DAT_RETURN dat_cno_query(DAT_CNO_HANDLE cno_handle, DAT_CNO_PARAM_MASK mask,
                         DAT_CNO_PARAM* cno_param) {
    Cno* const cno = lookup<Cno>(cno_handle);
    if (!cno) {
        return bad_cno();
    }
    if ((mask & ~(DAT_CNO_FIELD_PROXY | DAT_CNO_FIELD_ALL)) != 0 || !cno_param) {
        return bad_argument(cno_param ? 2 : 3);
    }
    cno_param->ia_handle = cno->ia().public_handle();
    const Cno::Agent agent = cno->agent();
    if (cno->has_descriptor()) {
        cno_param->proxy_type = DAT_PROXY_TYPE_FD;
        cno_param->proxy.fd = cno->descriptor();
    } else if (agent.function) {
        cno_param->proxy_type = DAT_PROXY_TYPE_AGENT;
        cno_param->proxy.agent = {agent.instance, agent.function};
    } else {
        cno_param->proxy_type = DAT_PROXY_TYPE_NONE;
        cno_param->proxy.agent = {nullptr, nullptr};
    }
    return DAT_SUCCESS;
}

DAT_RETURN dat_cno_free(DAT_CNO_HANDLE cno_handle) {
    Cno* const cno = lookup<Cno>(cno_handle);
    return cno ? guarded([&] { return cno->free(); }) : bad_cno();
}

DAT_RETURN dat_cno_wait(DAT_CNO_HANDLE cno_handle, DAT_TIMEOUT timeout,
                        DAT_EVD_HANDLE* evd_handle) {
    Cno* const cno = lookup<Cno>(cno_handle);
    if (!cno) {
        return bad_cno();
    }
    if (!evd_handle) {
        return bad_argument(3);
    }
    return guarded([&] {
        Evd* evd = nullptr;
        const Return rc = cno->wait(timeout, evd);
        *evd_handle = evd ? evd->handle() : DAT_HANDLE_NULL;
        return rc;
    });
}

DAT_RETURN dat_cno_trigger(DAT_CNO_HANDLE cno_handle, DAT_EVD_HANDLE* evd_handle) {
    Cno* const cno = lookup<Cno>(cno_handle);
    if (!cno) {
        return bad_cno();
    }
    if (!evd_handle) {
        return bad_argument(2);
    }
    return guarded([&] {
        Evd* evd = nullptr;
        const Return rc = cno->poll(evd);
        *evd_handle = evd ? evd->handle() : DAT_HANDLE_NULL;
        return rc;
    });
}

} // extern "C"
