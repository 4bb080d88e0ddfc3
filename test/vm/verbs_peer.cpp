// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The other side of a test on real verbs: rdma_cm and ibverbs as they are, with nothing
// of the provider, driven by lines on its standard input as test/transport/peer is.
//
//   verbs_peer ADDRESS     the address to listen on or connect from
//
//   listen               ok PORT
//   connect HOST PORT N  ok           with N bytes of private data
//   retries COUNT RNR    ok           how often either side of the connections to come
//                                     tries again; 7 for RNR: without end
//   unconfirmed          ok           the connections to come are made without a ready-to-use
//                                     message; `event` says `replied N`, and they can send
//   accept N             ok           the request that `event` has shown
//   reject N             ok
//   serve COUNT          ok           so many connections, each accepted, sent a message of
//                                     1 byte when one has come, and ended by the peer
//   event                the next event: connreq N | connected N | disconnected |
//                        rejected N | error TYPE STATUS
//   quiet                ok           if no event is waiting after a while
//   recv COUNT SIZE      ok           posts receives; before a connection too
//   send COUNT SIZE      ok           posts sends
//   solicited COUNT SIZE ok           the same with solicited events
//   region SIZE          ok ADDRESS KEY
//   write SIZE ADDRESS KEY, read SIZE ADDRESS KEY    ok    posts
//   finish               results OK FLUSHED OTHER    when all have completed
//   first                ok           when the first operation has completed
//   deaf                 ok           answers nothing any more, as if the wire were cut
//   disconnect           ok
//   quit
//
// A call that fails is answered by "failed ERRNO". N of an event is followed by
// " wrong" where the data is not pattern(N). Contents are checked against pattern(size).
#include "../transport/fixture.h"
#include "../transport/lines.h"

#include <fcntl.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>
#include <utility>

namespace dat::test {

void fail(const char* file, int line, const std::string& message) {
    std::cout << "broken " << file << ':' << line << ": " << message << std::endl;
    std::_Exit(1);
}

namespace {

constexpr int kDepth = 256;
constexpr int kReads = 4;
constexpr int kRepeated = 8; // so often may the other side of `serve` say its first message
constexpr int kResolveMs = 5000;

// `call`, of librdmacm or libibverbs, must return 0.
#define MUST(call) DAT_REQUIRE((call) == 0, std::strerror(errno))

struct Buffer {
    Bytes bytes;
    ibv_mr* mr = nullptr;
    bool done = false;
    bool checked = false; // arrived data has to be pattern(size)
    bool receive = false;
    ibv_wc completion{};
};

class Peer {
  public:
    explicit Peer(const std::string& address);
    ~Peer();

    std::string answer(const std::string& line);
    void pump();

  private:
    std::string connection(const std::string& verb, std::istringstream& rest);
    std::string operation(const std::string& verb, std::istringstream& rest);
    std::string serve(std::istringstream& rest);
    std::string event();
    std::string event_of_connection();
    std::string finish();
    void take(const rdma_cm_event& event);
    void adopt(rdma_cm_id* id);
    void await(rdma_cm_event_type type);
    void ready(ibv_qp_state state);
    void post_receive(Buffer& buffer);
    void post(Buffer& buffer, ibv_wr_opcode op, unsigned flags, Remote remote);
    Buffer& buffer(std::size_t size, bool filled);
    rdma_addrinfo* resolve(const char* host, const char* port, bool passive) const;
    rdma_conn_param parameters(const Bytes& data) const;

    const std::string address_;
    rdma_event_channel* channel_;
    rdma_cm_id* listener_ = nullptr;
    rdma_cm_id* id_ = nullptr; // with a queue pair
    ibv_cq* cq_ = nullptr;
    std::deque<std::string> events_;
    std::deque<rdma_cm_id*> requests_; // that `event` has not shown: a connection may be in use
    std::deque<Buffer> buffers_;
    std::deque<Buffer> regions_;
    int retries_ = 7;
    int rnr_retries_ = 7;
    bool unconfirmed_ = false;
    ibv_qp* apart_ = nullptr; // the queue pair of a connection that librdmacm is not to confirm
};

std::string result(int value) { return value == 0 ? "ok" : "failed " + std::to_string(errno); }

Peer::Peer(const std::string& address) : address_(address), channel_(rdma_create_event_channel()) {
    DAT_REQUIRE(channel_, std::strerror(errno));
    MUST(fcntl(channel_->fd, F_SETFL, O_NONBLOCK));
}

Peer::~Peer() {
    if (apart_)
        id_->qp = apart_;
    if (id_ && id_->qp)
        rdma_destroy_qp(id_);
    for (std::deque<Buffer>* list : {&buffers_, &regions_})
        for (Buffer& one : *list)
            if (one.mr)
                ibv_dereg_mr(one.mr);
    if (cq_)
        ibv_destroy_cq(cq_);
    requests_.insert(requests_.end(), {id_, listener_});
    for (rdma_cm_id* id : requests_)
        if (id)
            rdma_destroy_id(id);
    rdma_destroy_event_channel(channel_);
}

rdma_addrinfo* Peer::resolve(const char* host, const char* port, bool passive) const {
    rdma_addrinfo hints{};
    hints.ai_flags = RAI_NUMERICHOST | (passive ? RAI_PASSIVE : 0);
    hints.ai_port_space = RDMA_PS_TCP;
    rdma_addrinfo* found = nullptr;
    MUST(rdma_getaddrinfo(host, port, &hints, &found));
    return found;
}

rdma_conn_param Peer::parameters(const Bytes& data) const {
    rdma_conn_param param{};
    param.private_data = data.data();
    param.private_data_len = static_cast<std::uint8_t>(data.size());
    param.responder_resources = kReads;
    param.initiator_depth = kReads;
    param.retry_count = static_cast<std::uint8_t>(retries_);
    param.rnr_retry_count = static_cast<std::uint8_t>(rnr_retries_);
    return param;
}

// ---- events ----------------------------------------------------------------

// The connection that counts from now on; makes its queue pair, and posts the receives
// that came before it.
void Peer::adopt(rdma_cm_id* id) {
    if (id_) {
        if (id_->qp)
            rdma_destroy_qp(id_);
        rdma_destroy_id(id_);
    }
    id_ = id;
    if (!cq_)
        cq_ = ibv_create_cq(id->verbs, 2 * kDepth, nullptr, nullptr, 0);
    DAT_REQUIRE(cq_, std::strerror(errno));
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = cq_;
    attr.cap.max_send_wr = attr.cap.max_recv_wr = kDepth;
    attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
    attr.qp_type = IBV_QPT_RC;
    attr.sq_sig_all = 1;
    MUST(rdma_create_qp(id, nullptr, &attr));
    for (Buffer& one : buffers_)
        if (one.receive && !one.mr)
            post_receive(one);
}

std::string sized(const char* word, const rdma_cm_event& event) {
    const std::size_t size = event.param.conn.private_data_len;
    const auto* data = static_cast<const std::uint8_t*>(event.param.conn.private_data);
    const bool right = same(pattern(size).data(), data, size);
    return word + std::to_string(size) + (right ? "" : " wrong");
}

void Peer::take(const rdma_cm_event& event) {
    switch (event.event) {
    case RDMA_CM_EVENT_CONNECT_REQUEST:
        events_.push_back(sized("connreq ", event));
        requests_.push_back(event.id);
        break;
    case RDMA_CM_EVENT_ESTABLISHED:
        events_.push_back(sized("connected ", event));
        break;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
        id_->qp = std::exchange(apart_, nullptr);
        ready(IBV_QPS_RTR);
        ready(IBV_QPS_RTS);
        events_.push_back(sized("replied ", event));
        break;
    case RDMA_CM_EVENT_REJECTED:
        events_.push_back(sized("rejected ", event));
        break;
    case RDMA_CM_EVENT_DISCONNECTED:
        rdma_disconnect(event.id); // flushes what is outstanding
        events_.emplace_back("disconnected");
        break;
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
        break;
    default:
        events_.push_back("error " + std::to_string(event.event) + ' ' +
                          std::to_string(event.status));
    }
}

void Peer::ready(ibv_qp_state state) {
    ibv_qp_attr attr{};
    int mask = 0;
    attr.qp_state = state;
    MUST(rdma_init_qp_attr(id_, &attr, &mask));
    MUST(ibv_modify_qp(id_->qp, &attr, mask));
}

void Peer::pump() {
    rdma_cm_event* event = nullptr;
    while (rdma_get_cm_event(channel_, &event) == 0) {
        take(*event);
        rdma_ack_cm_event(event);
    }
    ibv_wc completion;
    while (cq_ && ibv_poll_cq(cq_, 1, &completion) == 1) {
        auto& one = *reinterpret_cast<Buffer*>(completion.wr_id);
        one.completion = completion;
        one.done = true;
    }
}

bool is_request(const std::string& text) { return text.rfind("connreq ", 0) == 0; }

template <class Done> bool pump_until(Peer& peer, Done&& done) {
    return wait_until([&] {
        peer.pump();
        return done();
    });
}

std::string Peer::event() {
    if (!pump_until(*this, [&] { return !events_.empty(); }))
        return "none";
    const std::string text = events_.front();
    events_.pop_front();
    if (is_request(text)) {
        adopt(requests_.front());
        requests_.pop_front();
    }
    return text;
}

// The next that is no request: the next one may come before the end of the connection at hand,
// which InfiniBand's connection manager says again after 4 s where it was lost.
std::string Peer::event_of_connection() {
    auto found = events_.end();
    if (!pump_until(*this, [&] {
            found = std::find_if_not(events_.begin(), events_.end(), is_request);
            return found != events_.end();
        }))
        return "none";
    const std::string text = *found;
    events_.erase(found);
    return text;
}

// While nothing else can come: waits for a step of address or route resolution.
void Peer::await(rdma_cm_event_type type) {
    rdma_cm_event* event = nullptr;
    DAT_REQUIRE(wait_until([&] { return rdma_get_cm_event(channel_, &event) == 0; }),
                "no CM event");
    DAT_REQUIRE(event->event == type, rdma_event_str(event->event));
    rdma_ack_cm_event(event);
}

// ---- operations ------------------------------------------------------------

Buffer& Peer::buffer(std::size_t size, bool filled) {
    Buffer& one = buffers_.emplace_back();
    one.bytes = filled ? pattern(size) : Bytes(size);
    one.checked = !filled;
    return one;
}

ibv_mr* registered(ibv_pd* pd, Bytes& bytes, int access) {
    bytes.reserve(1); // memory of length 0 has no address
    ibv_mr* mr = ibv_reg_mr(pd, bytes.data(), std::max<std::size_t>(bytes.size(), 1), access);
    DAT_REQUIRE(mr, std::strerror(errno));
    return mr;
}

ibv_sge segment(Buffer& one) {
    return {reinterpret_cast<std::uintptr_t>(one.bytes.data()),
            static_cast<std::uint32_t>(one.bytes.size()), one.mr->lkey};
}

void Peer::post_receive(Buffer& one) {
    one.mr = registered(id_->pd, one.bytes, IBV_ACCESS_LOCAL_WRITE);
    ibv_sge sge = segment(one);
    ibv_recv_wr wr{};
    wr.wr_id = reinterpret_cast<std::uintptr_t>(&one);
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    MUST(ibv_post_recv(id_->qp, &wr, &bad));
}

void Peer::post(Buffer& one, ibv_wr_opcode op, unsigned flags, Remote remote) {
    // The sink of a read is written to from afar, on iWARP.
    one.mr = registered(id_->pd, one.bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    ibv_sge sge = segment(one);
    ibv_send_wr wr{};
    wr.wr_id = reinterpret_cast<std::uintptr_t>(&one);
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = op;
    wr.send_flags = flags;
    wr.wr.rdma.remote_addr = remote.address;
    wr.wr.rdma.rkey = static_cast<std::uint32_t>(remote.key);
    ibv_send_wr* bad = nullptr;
    MUST(ibv_post_send(id_->qp, &wr, &bad));
}

std::string Peer::finish() {
    int ok = 0;
    int flushed = 0;
    int other = 0;
    for (Buffer& one : buffers_) {
        if (!pump_until(*this, [&] { return one.done; }))
            return "unfinished";
        const ibv_wc& completion = one.completion;
        ok += completion.status == IBV_WC_SUCCESS;
        flushed += completion.status == IBV_WC_WR_FLUSH_ERR;
        other += completion.status != IBV_WC_SUCCESS && completion.status != IBV_WC_WR_FLUSH_ERR;
        const bool arrived = one.checked && completion.status == IBV_WC_SUCCESS;
        if (arrived && one.receive && completion.byte_len != one.bytes.size())
            return "wrong length " + std::to_string(completion.byte_len);
        if (arrived && one.bytes != pattern(one.bytes.size()))
            return "wrong data";
    }
    for (Buffer& one : buffers_)
        ibv_dereg_mr(one.mr);
    buffers_.clear();
    return "results " + std::to_string(ok) + ' ' + std::to_string(flushed) + ' ' +
           std::to_string(other);
}

std::string Peer::operation(const std::string& verb, std::istringstream& rest) {
    std::size_t count = 0;
    std::size_t size = 0;
    Remote remote{};
    if (verb == "region") {
        rest >> size;
        Buffer& one = regions_.emplace_back();
        one.bytes.resize(size);
        one.mr =
            registered(id_->pd, one.bytes,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
        return "ok " + std::to_string(reinterpret_cast<std::uintptr_t>(one.bytes.data())) + ' ' +
               std::to_string(one.mr->rkey);
    }
    if (verb == "recv") {
        rest >> count >> size;
        while (count-- > 0) {
            Buffer& one = buffer(size, false);
            one.receive = true;
            if (id_)
                post_receive(one);
        }
        return "ok";
    }
    if (verb == "send" || verb == "solicited") {
        rest >> count >> size;
        while (count-- > 0)
            post(buffer(size, true), IBV_WR_SEND, verb == "send" ? 0 : IBV_SEND_SOLICITED, {});
        return "ok";
    }
    if (verb == "write" || verb == "read") {
        rest >> size >> remote.address >> remote.key;
        const bool write = verb == "write";
        post(buffer(size, write), write ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, 0, remote);
        return "ok";
    }
    return connection(verb, rest);
}

std::string Peer::connection(const std::string& verb, std::istringstream& rest) {
    std::string host;
    std::string port;
    std::size_t size = 0;
    if (verb == "listen") {
        rdma_addrinfo* here = resolve(address_.c_str(), "0", true);
        MUST(rdma_create_id(channel_, &listener_, nullptr, RDMA_PS_TCP));
        MUST(rdma_bind_addr(listener_, here->ai_src_addr));
        rdma_freeaddrinfo(here);
        MUST(rdma_listen(listener_, 16));
        return "ok " + std::to_string(ntohs(rdma_get_src_port(listener_)));
    }
    if (verb == "retries") {
        rest >> retries_ >> rnr_retries_;
        return "ok";
    }
    if (verb == "unconfirmed") {
        unconfirmed_ = true;
        return "ok";
    }
    if (verb == "connect") {
        rest >> host >> port >> size;
        rdma_addrinfo* there = resolve(host.c_str(), port.c_str(), false);
        rdma_cm_id* id = nullptr;
        MUST(rdma_create_id(channel_, &id, nullptr, RDMA_PS_TCP));
        MUST(rdma_resolve_addr(id, nullptr, there->ai_dst_addr, kResolveMs));
        rdma_freeaddrinfo(there);
        await(RDMA_CM_EVENT_ADDR_RESOLVED);
        MUST(rdma_resolve_route(id, kResolveMs));
        await(RDMA_CM_EVENT_ROUTE_RESOLVED);
        adopt(id);
        const Bytes data = pattern(size);
        rdma_conn_param param = parameters(data);
        if (unconfirmed_) { // librdmacm leaves the rest to whoever has the queue pair
            apart_ = std::exchange(id_->qp, nullptr);
            param.qp_num = apart_->qp_num;
        }
        return result(rdma_connect(id_, &param));
    }
    if (verb == "accept" || verb == "reject") {
        rest >> size;
        const Bytes data = pattern(size);
        if (verb == "reject")
            return result(rdma_reject(id_, data.data(), static_cast<std::uint8_t>(size)));
        rdma_conn_param param = parameters(data);
        return result(rdma_accept(id_, &param));
    }
    if (verb == "serve")
        return serve(rest);
    if (verb == "deaf") {
        ibv_qp_attr attr{};
        attr.qp_state = IBV_QPS_ERR;
        return result(ibv_modify_qp(id_->qp, &attr, IBV_QP_STATE));
    }
    if (verb == "disconnect")
        return result(rdma_disconnect(id_));
    return "what?";
}

// The message tells that the connection is established here as well: an end that overtakes
// this makes the iw_cm of Linux 6.1 stop at a BUG(). It waits for the peer's, as RFC 5044
// 7.1.2 demands: siw refuses a reply that has something behind it.
std::string Peer::serve(std::istringstream& rest) {
    int count = 0;
    for (rest >> count; count > 0; --count) {
        if (const std::string got = event(); !is_request(got))
            return got;
        for (int i = 0; i < kRepeated; ++i) {
            Buffer& one = buffer(1, false);
            one.receive = true;
            post_receive(one);
        }
        std::istringstream nothing("0");
        if (const std::string got = connection("accept", nothing); got != "ok")
            return got;
        if (const std::string got = event_of_connection(); got != "connected 0")
            return got;
        if (!pump_until(*this, [&] { return buffers_.front().done; }))
            return "no message";
        post(buffer(1, true), IBV_WR_SEND, 0, {});
        if (const std::string got = event_of_connection(); got != "disconnected")
            return got;
        if (const std::string got = finish(); got == "unfinished")
            return got;
    }
    return "ok";
}

std::string Peer::answer(const std::string& line) {
    std::istringstream rest(line);
    std::string verb;
    rest >> verb;
    if (verb == "event")
        return event();
    if (verb == "finish")
        return finish();
    if (verb == "first")
        return pump_until(*this, [&] { return buffers_.front().done; }) ? "ok" : "unfinished";
    if (verb == "quiet") {
        settle();
        pump();
        return events_.empty() ? "ok" : events_.front();
    }
    return operation(verb, rest);
}

} // namespace
} // namespace dat::test

int main(int argc, char** argv) {
    using namespace dat::test;
    if (argc != 2) {
        std::fprintf(stderr, "usage: verbs_peer ADDRESS\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN); // siw raises it at posts, where the peer has closed the stream
    Peer peer(argv[1]);
    serve_lines([&](const std::string& line) { return peer.answer(line); }, [&] { peer.pump(); });
    return 0;
}
