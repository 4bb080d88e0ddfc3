// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See verbs_fake.h.
#include "verbs_fake.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

#undef ibv_query_port
#undef ibv_reg_mr

namespace fake {
namespace {

std::mutex g_events; // of all channels

struct Channel : rdma_event_channel {
    std::deque<rdma_cm_event*> events;
};

constexpr std::uint8_t kAckTimeout = 14; // what the connection manager computes

int poll_cq(ibv_cq*, int most, ibv_wc* wc) {
    std::vector<ibv_wc>& all = state().completed;
    int count = 0;
    while (count < most && !all.empty()) {
        wc[count++] = all.front();
        all.erase(all.begin());
    }
    return count;
}

int accept_post(ibv_qp*, ibv_send_wr* wr, ibv_send_wr**) {
    const Inside here;
    state().sent.push_back(wr->wr_id);
    state().last_flags = wr->send_flags;
    state().sent_first.push_back(wr->num_sge > 0 ? wr->sg_list[0] : ibv_sge{});
    return 0;
}
int accept_receive(ibv_qp*, ibv_recv_wr* wr, ibv_recv_wr**) {
    const Inside here;
    state().receives.push_back({wr->wr_id, wr->num_sge > 0 ? wr->sg_list[0] : ibv_sge{}});
    return 0;
}
int accept_shared(ibv_srq*, ibv_recv_wr*, ibv_recv_wr**) { return 0; }
int arm(ibv_cq*, int) { return 0; }

template <class Object, class... Arguments> Object* make(Arguments... arguments) {
    const Inside here;
    ++state().others;
    return new Object{arguments...};
}
template <class Object> int unmake(Object* object) {
    --state().others;
    delete object;
    return 0;
}

ibv_mw* make_window(ibv_pd* pd, ibv_mw_type type) {
    static std::uint32_t last = 0x1000;
    return make<ibv_mw>(pd->context, pd, last += 0x100, 0U, type);
}

void fill(ibv_context& context, ibv_device& device) {
    context.device = &device;
    context.ops.poll_cq = poll_cq;
    context.ops.req_notify_cq = arm;
    context.ops.post_send = accept_post;
    context.ops.post_recv = accept_receive;
    context.ops.post_srq_recv = accept_shared;
    context.ops.alloc_mw = make_window;
    context.ops.dealloc_mw = unmake<ibv_mw>;
    context.async_fd = -1;
}

void push(rdma_cm_id* id, rdma_cm_event_type type) {
    const Inside here;
    auto* const event = new rdma_cm_event{};
    event->id = id;
    event->event = type;
    const std::lock_guard in(g_events);
    static_cast<Channel*>(id->channel)->events.push_back(event);
    eventfd_write(id->channel->fd, 1);
}

void say(ibv_async_event event) {
    const Inside here;
    state().said.push_back(event);
    eventfd_write(state().own->async_fd, 1);
}

template <class Object> int drop(Object* object) {
    --state().queues;
    delete object;
    return 0;
}

} // namespace

State::State() : leads_to(&devices[0]) {
    attr.device_cap_flags = IBV_DEVICE_MEM_WINDOW_TYPE_2B;
    attr.max_sge = 8;
    attr.max_sge_rd = 8;
    attr.max_qp_wr = 4096;
    attr.max_cqe = 65536;
    attr.max_srq = 1;
    attr.max_srq_wr = 4096;
    attr.max_srq_sge = 8;
    attr.max_qp_rd_atom = attr.max_qp_init_rd_atom = 16;
    for (int i = 0; i < 2; ++i) {
        std::strcpy(devices[i].name, i == 0 ? "one" : "two");
        devices[i].transport_type = IBV_TRANSPORT_IB;
        fill(shared[i], devices[i]);
    }
}

State& state() {
    static State instance;
    return instance;
}

void say(ibv_event_type type, ibv_qp* qp) { say({.element = {.qp = qp}, .event_type = type}); }
void say(ibv_event_type type, ibv_cq* cq) { say({.element = {.cq = cq}, .event_type = type}); }
void say(ibv_event_type type, ibv_srq* srq) { say({.element = {.srq = srq}, .event_type = type}); }
void say(ibv_event_type type, int port) {
    say({.element = {.port_num = port}, .event_type = type});
}
void answer(rdma_cm_id* id) {
    const bool iwarp = state().devices[0].transport_type == IBV_TRANSPORT_IWARP;
    push(id, iwarp ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_CONNECT_RESPONSE);
}
void become_siw() {
    state().attr.vendor_id = 0x626d74;
    for (ibv_device& device : state().devices) {
        device.transport_type = IBV_TRANSPORT_IWARP;
    }
}
rdma_cm_id* ask(rdma_cm_id* listener) {
    rdma_cm_id* const id = make<rdma_cm_id>(*listener);
    id->context = nullptr;
    push(id, RDMA_CM_EVENT_CONNECT_REQUEST);
    return id;
}
void leave(rdma_cm_id* id) { push(id, RDMA_CM_EVENT_DISCONNECTED); }
void complete(std::uint64_t wr_id, ibv_wc_status status) {
    const Inside here;
    ibv_wc wc{};
    wc.wr_id = wr_id;
    wc.status = status;
    complete(wc);
}

void complete(const ibv_wc& wc) {
    const Inside here;
    state().completed.push_back(wc);
}

} // namespace fake

using fake::state;

extern "C" {

const char* ibv_get_device_name(ibv_device* device) { return device->name; }
int ibv_fork_init() {
    ++state().fork_inits;
    return state().fork_answer;
}
int ibv_query_device(ibv_context*, ibv_device_attr* attr) {
    *attr = state().attr;
    return 0;
}
int ibv_query_port(ibv_context*, std::uint8_t, _compat_ibv_port_attr* attr) {
    reinterpret_cast<ibv_port_attr*>(attr)->max_msg_sz = 1U << 30;
    return 0;
}
ibv_context* ibv_open_device(ibv_device* device) {
    auto* const context = fake::make<ibv_context>();
    fake::fill(*context, *device);
    context->async_fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
    return state().own = context;
}
int ibv_close_device(ibv_context* context) {
    close(context->async_fd);
    state().own = nullptr;
    return fake::unmake(context);
}
int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
    if (context != state().own) {
        ++state().read_of_shared;
    }
    if (context != state().own || state().said.empty()) {
        errno = EAGAIN;
        return -1;
    }
    *event = state().said.front();
    state().said.pop_front();
    ++state().unacknowledged;
    eventfd_t one = 0;
    return eventfd_read(context->async_fd, &one);
}
void ibv_ack_async_event(ibv_async_event*) { --state().unacknowledged; }
ibv_pd* ibv_alloc_pd(ibv_context* context) { return fake::make<ibv_pd>(context, 0U); }
int ibv_dealloc_pd(ibv_pd* pd) { return fake::unmake(pd); }
ibv_mr* ibv_reg_mr(ibv_pd* pd, void* base, std::size_t length, int) {
    static std::uint32_t last = 0;
    last += 0x100;
    return fake::make<ibv_mr>(pd->context, pd, base, length, 0U, last, last);
}
ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* base, std::size_t length, std::uint64_t, unsigned) {
    return ibv_reg_mr(pd, base, length, 0);
}
int ibv_dereg_mr(ibv_mr* mr) { return fake::unmake(mr); }
ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
    return fake::make<ibv_comp_channel>(context, eventfd(0, EFD_CLOEXEC), 0);
}
int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
    close(channel->fd);
    return fake::unmake(channel);
}
ibv_cq* ibv_create_cq(ibv_context* context, int cqe, void* of, ibv_comp_channel* channel, int) {
    if (static_cast<std::uint32_t>(cqe) > state().most_queued) {
        errno = ENOMEM;
        return nullptr;
    }
    const fake::Inside here;
    auto* const cq = new ibv_cq{};
    cq->context = context;
    cq->channel = channel;
    cq->cq_context = of;
    ++state().queues;
    return cq;
}
int ibv_destroy_cq(ibv_cq* cq) { return fake::drop(cq); }
ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) {
    if (attr->attr.max_wr > state().most_queued) {
        errno = ENOMEM;
        return nullptr;
    }
    const fake::Inside here;
    auto* const srq = new ibv_srq{};
    srq->context = pd->context;
    srq->srq_context = attr->srq_context;
    ++state().queues;
    return state().last_srq = srq;
}
int ibv_destroy_srq(ibv_srq* srq) { return fake::drop(srq); }
ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
    const fake::Inside here;
    state().asked_inline.push_back(attr->cap.max_inline_data);
    if (attr->cap.max_inline_data > state().most_inline) {
        errno = EINVAL;
        return nullptr;
    }
    if (attr->cap.max_send_wr + attr->cap.max_recv_wr > state().most_queued) {
        errno = ENOMEM;
        return nullptr;
    }
    auto* const qp = new ibv_qp{};
    qp->context = pd->context;
    qp->qp_context = attr->qp_context;
    qp->send_cq = attr->send_cq;
    qp->srq = attr->srq;
    ++state().queues;
    return state().last_qp = qp;
}
int ibv_destroy_qp(ibv_qp* qp) { return fake::drop(qp); }
int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
    if ((mask & IBV_QP_STATE) != 0) {
        qp->state = attr->qp_state;
    }
    if (attr->qp_state == IBV_QPS_RTS) {
        state().ready = *attr;
        state().ready_mask = mask;
    }
    return 0;
}
int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attr, int, ibv_qp_init_attr*) {
    attr->qp_state = qp->state;
    return 0;
}

rdma_event_channel* rdma_create_event_channel() {
    auto* const channel = fake::make<fake::Channel>();
    channel->fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
    return channel;
}
void rdma_destroy_event_channel(rdma_event_channel* raw) {
    auto* const channel = static_cast<fake::Channel*>(raw);
    for (rdma_cm_event* event : channel->events) {
        delete event;
    }
    close(channel->fd);
    fake::unmake(channel);
}
int rdma_get_cm_event(rdma_event_channel* raw, rdma_cm_event** event) {
    const std::lock_guard in(fake::g_events);
    auto& events = static_cast<fake::Channel*>(raw)->events;
    if (events.empty()) {
        errno = EAGAIN;
        return -1;
    }
    *event = events.front();
    events.pop_front();
    eventfd_t one = 0;
    return eventfd_read(raw->fd, &one);
}
int rdma_ack_cm_event(rdma_cm_event* event) {
    delete event;
    return 0;
}
int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context, rdma_port_space) {
    *id = fake::make<rdma_cm_id>();
    (*id)->channel = channel;
    (*id)->context = context;
    state().last_id = *id;
    return 0;
}
int rdma_destroy_id(rdma_cm_id* id) {
    const std::lock_guard in(fake::g_events);
    auto& events = static_cast<fake::Channel*>(id->channel)->events;
    for (auto at = events.begin(); at != events.end();) {
        if ((*at)->id != id) {
            ++at;
            continue;
        }
        delete *at;
        at = events.erase(at);
        eventfd_t one = 0;
        eventfd_read(id->channel->fd, &one);
    }
    return fake::unmake(id);
}
int rdma_bind_addr(rdma_cm_id* id, sockaddr* address) {
    if (state().bind_error != 0) {
        errno = state().bind_error;
        return -1;
    }
    if (address) {
        sockaddr_in& own = id->route.addr.src_sin;
        std::memcpy(&own, address, sizeof own);
        own.sin_port = own.sin_port == 0 ? htons(fake::kPort) : own.sin_port;
    }
    id->verbs = &state().shared[0];
    id->port_num = 1;
    return 0;
}
int rdma_resolve_addr(rdma_cm_id* id, sockaddr*, sockaddr*, int ms) {
    state().address_ms = ms;
    id->verbs = &state().shared[state().leads_to - state().devices];
    id->port_num = 1;
    fake::push(id, RDMA_CM_EVENT_ADDR_RESOLVED);
    return 0;
}
int rdma_resolve_route(rdma_cm_id* id, int ms) {
    state().route_ms = ms;
    fake::push(id, RDMA_CM_EVENT_ROUTE_RESOLVED);
    return 0;
}
int rdma_connect(rdma_cm_id* id, rdma_conn_param* param) {
    state().param = *param;
    if (state().answers) {
        fake::answer(id);
    } else if (state().devices[0].transport_type == IBV_TRANSPORT_IWARP) {
        state().calls = true;
        for (;;) {
            pause();
        }
    }
    return 0;
}
int rdma_establish(rdma_cm_id*) { return 0; }
int rdma_listen(rdma_cm_id*, int) { return 0; }
std::uint16_t rdma_get_src_port(rdma_cm_id*) { return 0; }
int rdma_migrate_id(rdma_cm_id* id, rdma_event_channel* to) {
    id->channel = to;
    return 0;
}
int rdma_accept(rdma_cm_id* id, rdma_conn_param* param) {
    state().param = *param;
    fake::push(id, RDMA_CM_EVENT_ESTABLISHED);
    return 0;
}
int rdma_reject(rdma_cm_id*, const void*, std::uint8_t) { return 0; }
int rdma_disconnect(rdma_cm_id* id) {
    fake::push(id, RDMA_CM_EVENT_TIMEWAIT_EXIT);
    return 0;
}
int rdma_notify(rdma_cm_id*, ibv_event_type) {
    ++state().notified;
    return 0;
}
int rdma_init_qp_attr(rdma_cm_id*, ibv_qp_attr* attr, int* mask) {
    *mask = IBV_QP_STATE;
    if (attr->qp_state == IBV_QPS_RTS) {
        *mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT;
        attr->timeout = fake::kAckTimeout;
        attr->retry_cnt = state().param.retry_count;
    }
    return 0;
}

} // extern "C"
