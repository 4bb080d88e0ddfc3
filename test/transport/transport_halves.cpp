// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite: what fi_ext_dat.h offers to libraries of the verbs' kind: an end in two halves
// (await_peer()), a wait on one eventfd alone (tell()), memory that is flushed (set_flush()),
// private data as it is (set_raw_data()), the device (device()) and a way by it (resolve()).
#include "dat_suite.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>

using namespace dat::test;

namespace {

bool is_told(int fd, int timeout_ms) {
    pollfd polled{fd, POLLIN, 0};
    return poll(&polled, 1, timeout_ms) > 0;
}

SideOptions with_own_progress() {
    SideOptions options;
    options.progress = FI_PROGRESS_AUTO;
    options.eq_wait = FI_WAIT_NONE;
    return options;
}

// A connection whose sides both await each other.
std::unique_ptr<Pair> awaiting(const Transport& transport) {
    auto pair = std::make_unique<Pair>(transport);
    DAT_MUST(pair->active.dat()->await_peer(pair->active.get(), 1));
    pair->connect([](Endpoint& passive) { DAT_MUST(passive.dat()->await_peer(passive.get(), 1)); });
    return pair;
}

// Over iWARP an end of a device has no answer.
bool ends_at_once(const Transport& transport) {
    return std::string_view(transport.name).find("siw") != std::string_view::npos;
}

// What a region was flushed with.
struct Flushed {
    const std::uint8_t* begin = nullptr;
    std::size_t size = 0;
    int calls = 0;
    int answer = 0;
    static int flush(void* context, void* address, std::size_t size) {
        auto& seen = *static_cast<Flushed*>(context);
        seen.begin = static_cast<const std::uint8_t*>(address);
        seen.size = size;
        ++seen.calls;
        return seen.answer;
    }
};

} // namespace

// Who left first is told when the other one has left as well, and not before.
TRANSPORT_TEST(dat_halves, disconnect__is_over_when_both_have_left) {
    auto pair = awaiting(transport);
    DAT_MUST(pair->active.disconnect(FI_DAT_ABRUPT));
    wait_shutdown(pair->passive());
    require_state(pair->active, FI_DAT_DISCONNECTED);
    require_state(pair->passive(), FI_DAT_DISCONNECTED);
    if (!ends_at_once(transport)) {
        settle();
        cr_assert(pair->near.events().empty(), "it came before the peer has left");
    }
    DAT_MUST(pair->passive().disconnect(FI_DAT_ABRUPT));
    wait_shutdown(pair->active);
    settle();
    cr_assert(pair->near.events().empty());
    cr_assert(pair->far.events().empty());
}

// The same by the end of the endpoint, and with each disconnecting at once.
TRANSPORT_TEST(dat_halves, closing__leaves_as_well) {
    auto pair = awaiting(transport);
    DAT_MUST(pair->passive().disconnect(FI_DAT_ABRUPT));
    wait_shutdown(pair->active);
    DAT_MUST(pair->active.close());
    wait_shutdown(pair->passive());
}

TRANSPORT_TEST(dat_halves, both_at_once__are_told_once_each) {
    auto pair = awaiting(transport);
    DAT_MUST(pair->active.disconnect(FI_DAT_ABRUPT));
    DAT_MUST(pair->passive().disconnect(FI_DAT_ABRUPT));
    for (Endpoint* each : {&pair->active, &pair->passive()}) {
        wait_shutdown(*each);
    }
    settle();
    cr_assert(pair->near.events().empty());
    cr_assert(pair->far.events().empty());
}

// What has failed is told by its completion, and by the event when this side leaves.
TRANSPORT_TEST(dat_halves, a_failed_write__is_an_event_when_this_side_leaves) {
    auto pair = awaiting(transport);
    Bytes out(8);
    Op& write = pair->active.write_confirmed(out.data(), out.size(), {0, 0x12345});
    wait_op(write);
    cr_assert_eq(write.prov_errno, FI_DAT_DTO_REMOTE_ACCESS);
    settle();
    cr_assert(pair->near.events().empty());
    DAT_MUST(pair->active.disconnect(FI_DAT_ABRUPT));
    wait_shutdown(pair->active);
    require_end(pair->active, FI_DAT_END_BROKEN);
}

// A peer that does not await anybody leaves when it sees the end.
TRANSPORT_TEST(dat_halves, a_peer_of_another_kind__leaves_at_once) {
    Pair pair(transport);
    DAT_MUST(pair.active.dat()->await_peer(pair.active.get(), 1));
    pair.connect();
    DAT_MUST(pair.active.disconnect(FI_DAT_ABRUPT));
    wait_shutdown(pair.active);
    wait_shutdown(pair.passive());
}

// What the connection manager of InfiniBand and RoCE pads it to; elsewhere it has its own length.
void require_raw(const Bytes& got, const Bytes& sent, std::size_t padded) {
    Bytes expected = sent;
    expected.resize(std::max(sent.size(), padded));
    cr_assert_eq(got.size(), expected.size());
    cr_assert(got == expected);
}

TRANSPORT_TEST(dat_raw_data, private_data__goes_as_it_is) {
    SideOptions raw;
    raw.before_domain = [](fid_fabric* fabric) {
        DAT_MUST(dat_of(fabric)->set_raw_data(fabric, 1));
    };
    Side listener(transport, raw);
    Side side(transport, raw);
    const bool pads = transport.device && !ends_at_once(transport);
    listener.listen();
    const Bytes question = pattern(56);
    const Bytes answer = pattern(pads ? 196 : 100);
    const Bytes refusal = pattern(5);
    for (const bool accepts : {true, false}) {
        Endpoint asking(side);
        cr_assert_eq(asking.connect(listener, accepts ? question : Bytes(1, 1)), 0);
        Event request = wait_event(listener, FI_CONNREQ);
        require_raw(request.data, accepts ? question : Bytes(1, 1), pads ? 56 : 0);
        if (!accepts) {
            DAT_MUST(
                fi_reject(listener.pep(), request.info->handle, refusal.data(), refusal.size()));
            require_raw(wait_error(side, FI_ECONNREFUSED).data, refusal, pads ? 148 : 0);
            break;
        }
        Endpoint asked(listener, request);
        cr_assert_eq(asked.accept(answer), 0);
        require_raw(wait_event(side, FI_CONNECTED).data, answer, pads ? 196 : 0);
        wait_event(listener, FI_CONNECTED);
    }
}

// Of an RDMA device, and another one for each domain.
TRANSPORT_TEST(dat_device, context__is_the_domains_own) {
    Side near(transport);
    Side far(transport);
    ibv_context* contexts[2] = {};
    for (Side* each : {&near, &far}) {
        const int rc = dat_of(each->domain())->device(each->domain(), &contexts[each == &far]);
        cr_assert_eq(rc, each->device() ? 0 : -FI_ENODEV);
    }
    if (transport.device) {
        cr_assert_not_null(contexts[0]);
        cr_assert_neq(contexts[0], contexts[1]);
    }
}

// A device asks for the way, where nobody need listen; software finds out when it connects.
TRANSPORT_TEST(dat_resolve, address__has_a_way_or_none) {
    Side side(transport);
    Side other(transport);
    other.listen();
    const auto* ops = dat_of(side.domain());
    cr_assert_eq(ops->resolve(side.domain(), other.address().data(), 2'000'000), 0);
    sockaddr_in nobody{}; // in the network of each device of the guest
    std::memcpy(&nobody, other.address().data(), std::min(sizeof nobody, other.address().size()));
    nobody.sin_addr.s_addr = htonl((ntohl(nobody.sin_addr.s_addr) & ~255u) | 99);
    cr_assert_eq(ops->resolve(side.domain(), nullptr, 1000), -FI_EINVAL);
    if (transport.device) {
        cr_assert_neq(ops->resolve(side.domain(), &nobody, 100'000), 0);
    }
}

// Nobody but this thread calls the far side's objects, and it sleeps on the eventfd alone.
TRANSPORT_TEST(dat_tell, messages__write_to_the_eventfd) {
    auto pair = Pair::connected(transport, {}, with_own_progress());
    const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    fid_t queue = &pair->far.cq()->fid;
    auto* ops = table_of<fi_dat_ops_queue>(queue, FI_DAT_QUEUE_OPS);
    pair->far.asleep = true;
    for (int round = 0; round < 20; ++round) {
        Bytes in(5);
        Op& receive = pair->passive().recv(in.data(), in.size());
        while (ops->tell(queue, fd) == -FI_EAGAIN) {
            pair->far.pump_cq();
        }
        cr_assert_not(is_told(fd, 0));
        Op& send = pair->active.send("hello", 5);
        while (!is_told(fd, 10)) {
            pump_all(); // the sender's side
        }
        eventfd_t count = 0;
        cr_assert_eq(eventfd_read(fd, &count), 0);
        pair->far.pump_cq();
        cr_assert(receive.ok(), "round %d: told of nothing", round);
        wait_op(send);
    }
    DAT_MUST(ops->tell(queue, -1));
    pair->far.asleep = false;
    close(fd);
}

TRANSPORT_TEST(dat_tell, requests__write_to_the_eventfd) {
    Side listener(transport, with_own_progress());
    Side side(transport);
    const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    fid_t queue = &listener.eq()->fid;
    auto* ops = table_of<fi_dat_ops_queue>(queue, FI_DAT_QUEUE_OPS);
    DAT_MUST(ops->tell(queue, fd));
    listener.listen();
    listener.asleep = true;
    Endpoint asking(side);
    cr_assert_eq(asking.connect(listener), 0);
    cr_assert(is_told(fd, kWaitMs));
    cr_assert_eq(ops->tell(queue, fd), -FI_EAGAIN);
    listener.asleep = false;
    const Event request = wait_event(listener, FI_CONNREQ);
    DAT_MUST(
        dat_of(listener.fabric())->reject(listener.fabric(), request.info->handle, nullptr, 0));
    wait_error(side, FI_ECONNREFUSED);
    DAT_MUST(ops->tell(queue, -1));
    close(fd);
}

TRANSPORT_TEST(dat_flush, a_read_behind_writes__flushes_what_they_wrote) {
    auto pair = Pair::connected(transport);
    Region region(pair->far, 4096, FI_REMOTE_READ | FI_REMOTE_WRITE);
    Flushed seen;
    auto* ops = dat_of(pair->far.domain());
    const int rc = ops->set_flush(pair->far.domain(), region.mr(), Flushed::flush, &seen);
    if (pair->far.device()) {
        cr_assert_eq(rc, -FI_EOPNOTSUPP);
        return;
    }
    cr_assert_eq(rc, 0);
    Bytes out = pattern(200);
    Bytes in(8);
    Remote flushing = region.at(0);
    flushing.address |= FI_DAT_FLUSHED;
    wait_op(pair->active.read(in.data(), in.size(), flushing));
    cr_assert_eq(seen.calls, 0, "nothing had been written");
    wait_op(pair->active.write(out.data(), 100, region.at(1000)));
    wait_op(pair->active.write(out.data() + 100, 100, region.at(3000)));
    wait_op(pair->active.read(in.data(), in.size(), region.at(0)));
    cr_assert_eq(seen.calls, 0, "a plain read flushes");
    wait_op(pair->active.read(in.data(), in.size(), flushing));
    cr_assert_eq(seen.calls, 1);
    cr_assert_eq(seen.begin, region.data() + 1000);
    cr_assert_eq(seen.size, 2100);
    seen.answer = -1;
    wait_op(pair->active.write(out.data(), 8, region.at(0)));
    Op& refused = pair->active.read(in.data(), in.size(), flushing);
    wait_op(refused);
    cr_assert_not(refused.ok());
    wait_shutdown(pair->active);
    wait_shutdown(pair->passive());
}
