// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Event dispatchers and notification objects.
#include "dat-shim/evd.h"
#include "dat-shim/cno.h"
#include "dat-shim/cr.h"
#include "dat-shim/fast.h"
#include "dat-shim/udat/entry.h"

namespace dat::shim::udat {
namespace {

void translate_request(const Event::Request& request, DAT_EVENT& out) {
    DAT_CR_ARRIVAL_EVENT_DATA& data = out.event_data.cr_arrival_event_data;
    data.sp_handle.psp_handle = point_in_event(request.service_point);
    data.local_ia_address_ptr = const_cast<sockaddr*>(request.cr->ia().address());
    data.conn_qual = request.cr->qualifier();
    data.cr_handle = request.cr->handle();
    add_own(request, data);
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
        add_own(event.dto, dto);
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
    case Number::async_error_ia_catastrophic:
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
Return bad_evd() { return fail(Type::invalid_handle); }

// A CNO that may be none; false: the handle is bad.
bool find_cno(DAT_CNO_HANDLE handle, Cno*& cno) {
    cno = handle ? lookup<Cno>(handle) : nullptr;
    return cno || !handle;
}

// The code of a queue without events, or of a time that has passed, as programs compare it.
Return nothing_there(Return rc) {
    switch (type_of(rc)) {
    case Type::queue_empty:
        return kQueueEmpty;
    case Type::timeout_expired:
        return kTimeoutExpired;
    default:
        return rc;
    }
}

// dat_evd_dequeue() of what Evd::dequeue() does not do.
[[gnu::noinline]] Return dequeue_other(Evd& evd, DAT_EVENT& event) {
    Event got;
    const Return rc = evd.dequeue_other(got);
    if (rc == kSuccess) {
        translate(got, evd.handle(), event);
        return kSuccess;
    }
    return nothing_there(rc);
}

Cno::Agent agent_of(const DAT_OS_WAIT_PROXY_AGENT& agent) {
    return {agent.instance_data, agent.proxy_agent_func};
}

} // namespace
} // namespace dat::shim::udat

using namespace dat::shim;
using namespace dat::shim::udat;

extern "C" {

DAT_RETURN dat_evd_create(DAT_IA_HANDLE ia_handle, DAT_COUNT evd_min_qlen,
                          DAT_CNO_HANDLE cno_handle, DAT_EVD_FLAGS evd_flags,
                          DAT_EVD_HANDLE* evd_handle) {
    return answer([&] {
        Ia* const ia = find_ia(ia_handle);
        Cno* cno = nullptr;
        if (!ia) {
            return bad_ia();
        }
        if (!find_cno(cno_handle, cno)) {
            return bad_cno();
        }
        if ((bits(evd_flags) & ~kStreams) != 0) {
            return because(bad_argument(4), "flags of 0x%x: within 0x%x", bits(evd_flags),
                           kStreams);
        }
        if (!evd_handle) {
            return bad_argument(5);
        }
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
    return answer([&] {
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
        return kSuccess;
    });
}

DAT_RETURN dat_evd_free(DAT_EVD_HANDLE evd_handle) {
    return answer([&] {
        Evd* const evd = lookup<Evd>(evd_handle);
        return evd ? evd->free() : bad_evd();
    });
}

DAT_RETURN dat_evd_resize(DAT_EVD_HANDLE evd_handle, DAT_COUNT evd_min_qlen) {
    return answer([&] {
        Evd* const evd = lookup<Evd>(evd_handle);
        return evd ? evd->resize(evd_min_qlen) : bad_evd();
    });
}

DAT_RETURN dat_evd_modify_cno(DAT_EVD_HANDLE evd_handle, DAT_CNO_HANDLE cno_handle) {
    return answer([&] {
        Evd* const evd = lookup<Evd>(evd_handle);
        Cno* cno = nullptr;
        if (!evd) {
            return bad_evd();
        }
        return find_cno(cno_handle, cno) ? evd->set_cno(cno) : bad_cno();
    });
}

DAT_RETURN dat_evd_enable(DAT_EVD_HANDLE evd_handle) {
    return answer([&] {
        Evd* const evd = lookup<Evd>(evd_handle);
        return evd ? evd->enable(true) : bad_evd();
    });
}

DAT_RETURN dat_evd_disable(DAT_EVD_HANDLE evd_handle) {
    return answer([&] {
        Evd* const evd = lookup<Evd>(evd_handle);
        return evd ? evd->enable(false) : bad_evd();
    });
}

DAT_RETURN dat_evd_set_unwaitable(DAT_EVD_HANDLE evd_handle) {
    return answer([&] {
        Evd* const evd = lookup<Evd>(evd_handle);
        return evd ? evd->set_waitable(false) : bad_evd();
    });
}

DAT_RETURN dat_evd_clear_unwaitable(DAT_EVD_HANDLE evd_handle) {
    return answer([&] {
        Evd* const evd = lookup<Evd>(evd_handle);
        return evd ? evd->set_waitable(true) : bad_evd();
    });
}

DAT_RETURN dat_evd_wait(DAT_EVD_HANDLE evd_handle, DAT_TIMEOUT timeout, DAT_COUNT threshold,
                        DAT_EVENT* event, DAT_COUNT* n_more_events) {
    return answer_sleeper([&] {
        Evd* const evd = lookup<Evd>(evd_handle);
        if (!evd) {
            return bad_evd();
        }
        if (!event || !n_more_events) {
            return bad_argument(event ? 5 : 4);
        }
        Event got;
        const Return rc = evd->wait(timeout, threshold, got, *n_more_events);
        if (rc == kSuccess) {
            translate(got, evd_handle, *event);
        }
        return nothing_there(rc);
    });
}

DAT_RETURN dat_evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT* event) {
    return answer([&] {
        Evd* const evd = lookup<Evd>(evd_handle);
        if (!evd) [[unlikely]] {
            return bad_evd();
        }
        if (!event) [[unlikely]] {
            return bad_argument(2);
        }
        const Evd::Next next = evd->dequeue([=](const Slot& slot, std::uint32_t length) {
            translate_plain({slot.ep, slot.cookie, 0, length, 0, 0, slot.operation}, evd_handle,
                            *event);
        });
        if (next == Evd::Next::plain) [[likely]] {
            return kSuccess;
        }
        return next == Evd::Next::none ? kQueueEmpty : dequeue_other(*evd, *event);
    });
}

DAT_RETURN dat_evd_post_se(DAT_EVD_HANDLE evd_handle, const DAT_EVENT* event) {
    return answer([&] {
        Evd* const evd = lookup<Evd>(evd_handle);
        if (!evd) {
            return bad_evd();
        }
        if (!event || event->event_number != DAT_SOFTWARE_EVENT) { // EVD-33
            return bad_argument(2);
        }
        return evd->post_software(event->event_data.software_event_data.pointer);
    });
}

DAT_RETURN dat_cno_create(DAT_IA_HANDLE ia_handle, DAT_OS_WAIT_PROXY_AGENT agent,
                          DAT_CNO_HANDLE* cno_handle) {
    return answer([&] {
        Ia* const ia = find_ia(ia_handle);
        if (!ia) {
            return bad_ia();
        }
        if (!cno_handle) {
            return bad_argument(3);
        }
        Cno* cno = nullptr;
        const Return rc = Cno::create(*ia, agent_of(agent), cno);
        *cno_handle = cno->handle();
        return rc;
    });
}

DAT_RETURN dat_cno_modify_agent(DAT_CNO_HANDLE cno_handle, DAT_OS_WAIT_PROXY_AGENT agent) {
    return answer([&] {
        Cno* const cno = lookup<Cno>(cno_handle);
        return cno ? cno->set_agent(agent_of(agent)) : bad_cno();
    });
}

DAT_RETURN dat_cno_query(DAT_CNO_HANDLE cno_handle, DAT_CNO_PARAM_MASK mask,
                         DAT_CNO_PARAM* cno_param) {
    return answer([&] {
        Cno* const cno = lookup<Cno>(cno_handle);
        if (!cno) {
            return bad_cno();
        }
        if ((mask & ~kCnoFields) != 0 || !cno_param) {
            return bad_argument(cno_param ? 2 : 3);
        }
        cno_param->ia_handle = cno->ia().public_handle();
        add_own(*cno, *cno_param);
        return kSuccess;
    });
}

DAT_RETURN dat_cno_free(DAT_CNO_HANDLE cno_handle) {
    return answer([&] {
        Cno* const cno = lookup<Cno>(cno_handle);
        return cno ? cno->free() : bad_cno();
    });
}

DAT_RETURN dat_cno_wait(DAT_CNO_HANDLE cno_handle, DAT_TIMEOUT timeout,
                        DAT_EVD_HANDLE* evd_handle) {
    return answer_sleeper([&] {
        Cno* const cno = lookup<Cno>(cno_handle);
        if (!cno) {
            return bad_cno();
        }
        if (!evd_handle) {
            return bad_argument(3);
        }
        Evd* evd = nullptr;
        const Return rc = cno->wait(timeout, evd);
        *evd_handle = evd ? evd->handle() : DAT_HANDLE_NULL;
        return nothing_there(rc);
    });
}

DAT_SHIM_EXPORT(dat_evd_create);
DAT_SHIM_EXPORT(dat_evd_query);
DAT_SHIM_EXPORT(dat_evd_free);
DAT_SHIM_EXPORT(dat_evd_resize);
DAT_SHIM_EXPORT(dat_evd_modify_cno);
DAT_SHIM_EXPORT(dat_evd_enable);
DAT_SHIM_EXPORT(dat_evd_disable);
DAT_SHIM_EXPORT(dat_evd_set_unwaitable);
DAT_SHIM_EXPORT(dat_evd_clear_unwaitable);
DAT_SHIM_EXPORT(dat_evd_wait);
DAT_SHIM_EXPORT(dat_evd_dequeue);
DAT_SHIM_EXPORT(dat_evd_post_se);
DAT_SHIM_EXPORT(dat_cno_create);
DAT_SHIM_EXPORT(dat_cno_modify_agent);
DAT_SHIM_EXPORT(dat_cno_query);
DAT_SHIM_EXPORT(dat_cno_free);
DAT_SHIM_EXPORT(dat_cno_wait);

} // extern "C"
