// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Event dispatchers and notification objects.
#include "pair.h"

#include <atomic>
#include <cstddef>
#include <fstream>
#include <poll.h>
#include <string>
#include <thread>
#include <unistd.h>

using namespace dat::test;

namespace {

DAT_RETURN post_software(DAT_EVD_HANDLE evd, void* pointer) {
    DAT_EVENT event{};
    event.event_number = DAT_SOFTWARE_EVENT;
    event.event_data.software_event_data.pointer = pointer;
    return dat_evd_post_se(evd, &event);
}

DAT_EVD_STATE state_of(DAT_EVD_HANDLE evd) {
    DAT_EVD_PARAM param;
    EXPECT_OK(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
    return param.evd_state;
}

// Whether that thread of this process is asleep now.
bool sleeps(pid_t thread) {
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
    std::string line;
    std::getline(file, line);
    const std::size_t name_ends = line.rfind(") ");
    return name_ends != std::string::npos && line.compare(name_ends, 3, ") S") == 0;
}

// Waits in a thread of its own for `evd`; what it returns.
struct Waiter {
    explicit Waiter(DAT_EVD_HANDLE evd)
        : thread([this, evd] {
              DAT_EVENT event;
              DAT_COUNT more;
              code = dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &more);
          }) {
        // Blocked is who makes others be refused (EVD-17).
        DAT_EVENT event;
        while (DAT_GET_TYPE(dat_evd_dequeue(evd, &event)) != DAT_INVALID_STATE) {
            std::this_thread::yield();
        }
    }
    DAT_RETURN result() {
        thread.join();
        return code;
    }
    DAT_RETURN code = 0;
    std::thread thread;
};

} // namespace

// EVD-1, EVD-2, EVD-4
Test(shim_evd, creation__checks_and_tells) {
    Adapter adapter;
    DAT_EVD_HANDLE evd;
    EXPECT_TYPE(dat_evd_create(adapter.ia, 0, DAT_HANDLE_NULL, DAT_EVD_DEFAULT_FLAG, &evd),
                DAT_INVALID_PARAMETER);
    EXPECT_TYPE(dat_evd_create(adapter.ia, 1 << 30, DAT_HANDLE_NULL, DAT_EVD_DEFAULT_FLAG, &evd),
                DAT_INSUFFICIENT_RESOURCES);
    EXPECT_TYPE(dat_evd_create(adapter.ia, 8, adapter.pz, DAT_EVD_DEFAULT_FLAG, &evd),
                DAT_INVALID_HANDLE);
    EXPECT_OK(dat_evd_create(adapter.ia, 8, DAT_HANDLE_NULL, DAT_EVD_DEFAULT_FLAG, &evd));
    DAT_EVD_PARAM param;
    EXPECT_OK(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
    cr_assert_eq(param.ia_handle, adapter.ia);
    cr_assert_geq(param.evd_qlen, 8);
    cr_assert_eq(param.evd_flags, DAT_EVD_DEFAULT_FLAG);
    cr_assert(param.evd_state & DAT_EVD_STATE_ENABLED);
    cr_assert(param.evd_state & DAT_EVD_STATE_WAITABLE);
}

// EVD-3
Test(shim_evd, an_evd_without_the_stream__is_refused) {
    Adapter adapter;
    DAT_EP_HANDLE ep;
    const DAT_EVD_HANDLE software = adapter.evd(DAT_EVD_SOFTWARE_FLAG);
    EXPECT_TYPE(dat_ep_create(adapter.ia, adapter.pz, software, DAT_HANDLE_NULL, DAT_HANDLE_NULL,
                              nullptr, &ep),
                DAT_INVALID_HANDLE);
    DAT_PSP_HANDLE psp;
    DAT_CONN_QUAL qualifier;
    EXPECT_TYPE(dat_psp_create_any(adapter.ia, &qualifier, software, DAT_PSP_CONSUMER_FLAG, &psp),
                DAT_INVALID_HANDLE);
}

// EVD-10, EVD-11, EVD-13, EVD-14, EVD-15, EVD-16, EVD-5
Test(shim_evd, wait__heeds_threshold_and_timeout) {
    Adapter adapter;
    const DAT_EVD_HANDLE evd = adapter.evd(DAT_EVD_SOFTWARE_FLAG, 4);
    DAT_EVENT event;
    DAT_COUNT more = -1;
    EXPECT_TYPE(dat_evd_wait(evd, 0, 0, &event, &more), DAT_INVALID_PARAMETER);
    EXPECT_TYPE(dat_evd_wait(evd, 0, 5, &event, &more), DAT_INVALID_PARAMETER);
    EXPECT_TYPE(dat_evd_wait(evd, 0, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
    cr_assert_eq(more, 0);
    int marks[3];
    EXPECT_OK(post_software(evd, &marks[0]));
    EXPECT_TYPE(dat_evd_wait(evd, 1000, 2, &event, &more), DAT_TIMEOUT_EXPIRED);
    cr_assert_eq(more, 1);
    EXPECT_OK(post_software(evd, &marks[1]));
    EXPECT_OK(post_software(evd, &marks[2]));
    for (int i = 0; i < 3; ++i) {
        EXPECT_OK(dat_evd_wait(evd, kSoon, i == 0 ? 3 : 1, &event, &more));
        cr_assert_eq(event.event_data.software_event_data.pointer, &marks[i]);
        cr_assert_eq(more, 2 - i);
    }
}

// EVD-33, U-15, EVD-21
Test(shim_evd, software_events__fill_the_queue_and_no_more) {
    Adapter adapter;
    const DAT_EVD_HANDLE evd = adapter.evd(DAT_EVD_SOFTWARE_FLAG, 4);
    for (int i = 0; i < 4; ++i) {
        EXPECT_OK(post_software(evd, nullptr));
    }
    EXPECT_TYPE(post_software(evd, nullptr), DAT_QUEUE_FULL);
    cr_assert(is_empty(adapter.async));
    DAT_EVENT event;
    for (int i = 0; i < 4; ++i) {
        EXPECT_OK(dat_evd_dequeue(evd, &event));
    }
    cr_assert(is_empty(evd));
    event.event_number = DAT_DTO_COMPLETION_EVENT;
    EXPECT_TYPE(dat_evd_post_se(evd, &event), DAT_INVALID_PARAMETER);
    EXPECT_TYPE(post_software(adapter.evd(DAT_EVD_DTO_FLAG), nullptr), DAT_INVALID_PARAMETER);
}

// EVD-32
Test(shim_evd, resize__loses_nothing) {
    Adapter adapter;
    const DAT_EVD_HANDLE evd = adapter.evd(DAT_EVD_SOFTWARE_FLAG, 4);
    EXPECT_OK(post_software(evd, nullptr));
    EXPECT_OK(post_software(evd, nullptr));
    EXPECT_TYPE(dat_evd_resize(evd, 0), DAT_INVALID_PARAMETER);
    EXPECT_TYPE(dat_evd_resize(evd, 1), DAT_INVALID_STATE);
    EXPECT_OK(dat_evd_resize(evd, 8));
    DAT_EVENT event;
    EXPECT_OK(dat_evd_dequeue(evd, &event));
    EXPECT_OK(dat_evd_dequeue(evd, &event));
}

// EVD-17, EVD-19, U-53
Test(shim_evd, a_blocked_waiter__is_alone_until_the_evd_is_unwaitable) {
    Adapter adapter;
    const DAT_EVD_HANDLE evd = adapter.evd(DAT_EVD_SOFTWARE_FLAG);
    Waiter waiter(evd);
    DAT_EVENT event;
    DAT_COUNT more;
    EXPECT_TYPE(dat_evd_wait(evd, 0, 1, &event, &more), DAT_INVALID_STATE);
    EXPECT_TYPE(dat_evd_dequeue(evd, &event), DAT_INVALID_STATE);
    EXPECT_TYPE(dat_evd_free(evd), DAT_INVALID_STATE);
    EXPECT_OK(dat_evd_set_unwaitable(evd));
    EXPECT_TYPE(waiter.result(), DAT_INVALID_STATE);
    EXPECT_TYPE(dat_evd_wait(evd, 0, 1, &event, &more), DAT_INVALID_STATE);
    cr_assert(state_of(evd) & DAT_EVD_STATE_UNWAITABLE);
    EXPECT_OK(post_software(evd, nullptr));
    EXPECT_OK(dat_evd_dequeue(evd, &event));
    EXPECT_OK(dat_evd_clear_unwaitable(evd));
    EXPECT_OK(dat_evd_clear_unwaitable(evd));
    EXPECT_TYPE(dat_evd_wait(evd, 0, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
}

// EVD-20, IA-8
Test(shim_evd, an_abrupt_close__releases_waiters_of_evds_and_cnos) {
    Adapter adapter;
    const DAT_EVD_HANDLE evd = adapter.evd(DAT_EVD_SOFTWARE_FLAG);
    DAT_CNO_HANDLE cno;
    EXPECT_OK(dat_cno_create(adapter.ia, DAT_OS_WAIT_PROXY_AGENT{}, &cno));
    adapter.evd(DAT_EVD_SOFTWARE_FLAG, 8, cno);
    Waiter waiter(evd);
    std::atomic<pid_t> sleeper{0};
    DAT_RETURN of_cno = 0;
    DAT_EVD_HANDLE hint = evd;
    std::thread thread([&] {
        sleeper = gettid();
        of_cno = dat_cno_wait(cno, DAT_TIMEOUT_INFINITE, &hint);
    });
    while (sleeper == 0 || !sleeps(sleeper)) {
        std::this_thread::yield();
    }
    EXPECT_OK(dat_ia_close(adapter.ia, DAT_CLOSE_ABRUPT_FLAG));
    EXPECT_TYPE(waiter.result(), DAT_ABORT);
    thread.join();
    cr_assert_neq(of_cno, static_cast<DAT_RETURN>(DAT_SUCCESS));
    cr_assert_null(hint);
}

// CNO-1, CNO-2, CNO-3, CNO-4, CNO-7, CNO-8, EVD-30, EVD-31
Test(shim_cno, wait__tells_which_evd_has_something) {
    Adapter adapter;
    DAT_CNO_HANDLE cno;
    EXPECT_OK(dat_cno_create(adapter.ia, DAT_OS_WAIT_PROXY_AGENT{}, &cno));
    DAT_EVD_HANDLE hint = adapter.async;
    // U-69: programs compare these whole.
    cr_assert_eq(dat_cno_wait(cno, 1000, &hint), DAT_QUEUE_EMPTY);
    cr_assert_null(hint);
    DAT_EVENT none;
    DAT_COUNT more;
    cr_assert_eq(dat_evd_dequeue(adapter.async, &none), DAT_QUEUE_EMPTY);
    cr_assert_eq(dat_evd_wait(adapter.async, 1000, 1, &none, &more), DAT_TIMEOUT_EXPIRED);
    const DAT_EVD_HANDLE first = adapter.evd(DAT_EVD_SOFTWARE_FLAG, 8, cno);
    const DAT_EVD_HANDLE second = adapter.evd(DAT_EVD_SOFTWARE_FLAG, 8, cno);
    EXPECT_TYPE(dat_cno_free(cno), DAT_INVALID_STATE);
    EXPECT_OK(post_software(second, nullptr)); // before any wait
    EXPECT_OK(dat_cno_wait(cno, kSoon, &hint));
    cr_assert_eq(hint, second);
    DAT_EVENT event;
    EXPECT_OK(dat_evd_dequeue(second, &event));
    EXPECT_OK(dat_evd_disable(first));
    EXPECT_OK(post_software(first, nullptr));
    EXPECT_TYPE(dat_cno_wait(cno, kBriefly, &hint), DAT_QUEUE_EMPTY);
    EXPECT_OK(dat_evd_enable(first));
    EXPECT_OK(dat_cno_wait(cno, kSoon, &hint));
    cr_assert_eq(hint, first);
    EXPECT_OK(dat_evd_modify_cno(first, DAT_HANDLE_NULL));
    EXPECT_OK(dat_evd_free(second));
    EXPECT_OK(dat_cno_free(cno));
}

namespace {

std::atomic<int> g_called{0};
std::atomic<DAT_EVD_HANDLE> g_with{nullptr};

void agent(DAT_PVOID, DAT_EVD_HANDLE evd) {
    g_with = evd;
    ++g_called;
}

} // namespace

// CNO-6, U-18
Test(shim_cno, an_agent__is_called_once) {
    Adapter adapter;
    DAT_CNO_HANDLE cno;
    EXPECT_OK(dat_cno_create(adapter.ia, DAT_OS_WAIT_PROXY_AGENT{nullptr, agent}, &cno));
    const DAT_EVD_HANDLE evd = adapter.evd(DAT_EVD_SOFTWARE_FLAG, 8, cno);
    EXPECT_OK(post_software(evd, nullptr));
    while (g_called == 0) {
        std::this_thread::yield();
    }
    cr_assert_eq(g_with.load(), evd);
    DAT_EVD_HANDLE hint;
    EXPECT_OK(dat_cno_wait(cno, kSoon, &hint)); // delivered here as well
    EXPECT_OK(post_software(evd, nullptr));
    EXPECT_OK(dat_cno_wait(cno, kSoon, &hint));
    cr_assert_eq(g_called.load(), 1);
}

// EVD-12, EVD-22, DTO-22, DTO-23, U-27, EPA-11
Test(shim_evd, solicited_and_unsignalled__decide_who_is_woken) {
    Adapter adapter;
    Memory memory(adapter);
    DAT_EP_ATTR attr{};
    attr.max_recv_dtos = attr.max_request_dtos = 8;
    attr.max_recv_iov = attr.max_request_iov = 1;
    attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
    attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
    Side a(adapter, &attr);
    Side b(adapter, &attr);
    Listener listener(adapter);
    EXPECT_OK(a.connect(listener.qualifier));
    EXPECT_OK(dat_cr_accept(listener.request(), b.ep, 0, nullptr));
    expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
    expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
    DAT_EVENT event;
    DAT_COUNT more;
    EXPECT_TYPE(dat_evd_wait(b.recv, 0, 2, &event, &more), DAT_INVALID_STATE);
    EXPECT_OK(b.receive(memory.at(0, 64), 1));
    EXPECT_OK(b.receive(memory.at(64, 64), 2));
    EXPECT_OK(a.send(memory.at(128, 8), 3, DAT_COMPLETION_UNSIGNALLED_FLAG));
    if (place().device) { // which does not tell what was solicited
        expect_dto(b.recv, 1);
    } else {
        EXPECT_TYPE(dat_evd_wait(b.recv, kBriefly, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
    }
    EXPECT_TYPE(dat_evd_wait(a.request, kBriefly, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
    cr_assert_eq(more, 1);
    EXPECT_OK(a.send(memory.at(128, 8), 4, DAT_COMPLETION_SOLICITED_WAIT_FLAG));
    expect_dto(b.recv, place().device ? 2 : 1);
    expect_dto(a.request, 3);
    if (!place().device) {
        EXPECT_OK(dat_evd_dequeue(b.recv, &event));
    }
    DAT_EP_HANDLE ep;
    EXPECT_TYPE(dat_ep_create(adapter.ia, adapter.pz, b.recv, DAT_HANDLE_NULL, DAT_HANDLE_NULL,
                              nullptr, &ep),
                DAT_INVALID_PARAMETER);
}

// EVD-21: what came within the program's own call is there, also right after a look in vain.
Test(shim_evd, dequeue_right_after_one_in_vain__finds_what_came_between) {
    Pair pair;
    cr_assert(is_empty(pair.a.conn));
    EXPECT_OK(dat_ep_disconnect(pair.a.ep, DAT_CLOSE_ABRUPT_FLAG));
    DAT_EVENT event;
    EXPECT_OK(dat_evd_dequeue(pair.a.conn, &event));
    cr_assert_eq(event.event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
}

// EVD-23, DISC-10, EP-75, IA-12
Test(shim_evd, all_streams_in_one__come_in_order) {
    Adapter adapter;
    Memory memory(adapter);
    const DAT_EVD_HANDLE one = adapter.evd(DAT_EVD_DEFAULT_FLAG);
    DAT_EP_HANDLE ep;
    EXPECT_OK(dat_ep_create(adapter.ia, adapter.pz, one, one, one, nullptr, &ep));
    Side far(adapter);
    DAT_CONN_QUAL qualifier;
    DAT_PSP_HANDLE psp;
    EXPECT_OK(dat_psp_create_any(adapter.ia, &qualifier, one, DAT_PSP_CONSUMER_FLAG, &psp));
    DAT_LMR_TRIPLET piece = memory.at(0, 64);
    DAT_DTO_COOKIE cookie;
    for (cookie.as_64 = 0; cookie.as_64 < 3; ++cookie.as_64) {
        EXPECT_OK(dat_ep_post_recv(ep, 1, &piece, cookie, DAT_COMPLETION_DEFAULT_FLAG));
    }
    EXPECT_OK(far.connect(qualifier));
    const DAT_EVENT request = expect(one, DAT_CONNECTION_REQUEST_EVENT);
    EXPECT_OK(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, ep, 0, nullptr));
    expect(far.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
    EXPECT_OK(far.send(memory.at(64, 8), 7));
    EXPECT_OK(far.send(memory.at(64, 8), 8));
    expect_dto(far.request, 7);
    expect_dto(far.request, 8); // both messages are there by now
    EXPECT_OK(dat_ep_disconnect(far.ep, DAT_CLOSE_ABRUPT_FLAG));
    expect(far.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
    expect(one, DAT_CONNECTION_EVENT_ESTABLISHED);
    expect_dto(one, 0);
    expect_dto(one, 1);
    expect_dto(one, 2, DAT_DTO_ERR_FLUSHED);
    expect(one, DAT_CONNECTION_EVENT_DISCONNECTED);
    cr_assert(is_empty(one));
}
