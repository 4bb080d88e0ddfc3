// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite: sleeping for queues that have no descriptor of their own
// (fi_dat_ops_queue).
#include "dat_suite.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <vector>

using namespace dat::test;

namespace {

// A thread's sleep on one queue.
class Sleep {
  public:
    explicit Sleep(fid_t queue)
        : queue_(queue), eventfd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
          ops_(table_of<fi_dat_ops_queue>(queue, FI_DAT_QUEUE_OPS)) {}
    ~Sleep() {
        ops_->watch(queue_, -1);
        close(eventfd_);
    }
    Sleep(const Sleep&) = delete;
    Sleep& operator=(const Sleep&) = delete;

    // Blocks until there may be something to read; false: nothing came in that time.
    bool block(int timeout_ms) {
        eventfd_t count = 0;
        eventfd_read(eventfd_, &count);
        const int may_sleep = ops_->watch(queue_, eventfd_);
        if (may_sleep == -FI_EAGAIN) {
            return true;
        }
        cr_assert_eq(may_sleep, 0, "watch: %d", may_sleep);
        std::vector<pollfd> polled{{ops_->arrivals(queue_), POLLIN, 0}, {eventfd_, POLLIN, 0}};
        for (const int fd : descriptors()) {
            polled.push_back({fd, POLLIN, 0});
        }
        const bool came = poll(polled.data(), polled.size(), timeout_ms) > 0;
        if (polled[0].revents != 0) {
            cr_assert_eq(ops_->arrived(queue_), 0);
        }
        return came;
    }
    bool told() const {
        eventfd_t count = 0;
        return eventfd_read(eventfd_, &count) == 0;
    }
    std::vector<int> descriptors() {
        const std::size_t count = ops_->descriptors(queue_, nullptr, 0, &changes);
        std::vector<int> fds(count);
        cr_assert_eq(ops_->descriptors(queue_, fds.data(), count, nullptr), count);
        return fds;
    }
    fi_dat_ops_queue& ops() { return *ops_; }

    std::uint64_t changes = 0;

  private:
    fid_t queue_;
    int eventfd_;
    fi_dat_ops_queue* ops_;
};

} // namespace

TRANSPORT_TEST(dat_queue, messages_come__each_wakes_who_sleeps) {
    auto pair = Pair::connected(transport);
    Sleep sleep(&pair->far.cq()->fid);
    pair->far.pump();
    pair->far.asleep = true;
    for (int round = 0; round < 50; ++round) {
        Bytes in(5);
        Op& receive = pair->passive().recv(in.data(), in.size());
        pair->active.send("hello", 5);
        while (!receive.done()) {
            cr_assert(sleep.block(kWaitMs), "round %d: never woken", round);
            pair->far.pump_cq();
            pump_all(); // the sender's side
        }
        cr_assert(receive.ok());
    }
}

// What another thread's progress brings, too; and only as long as it is asked for.
TRANSPORT_TEST(dat_queue, what_others_bring__is_told_once_for_each_watch) {
    auto pair = Pair::connected(transport);
    Sleep sleep(&pair->far.cq()->fid);
    wait_until([&] { return sleep.ops().watch(&pair->far.cq()->fid, -1) == 0; });
    Bytes in(5);
    Op& receive = pair->passive().recv(in.data(), in.size());
    wait_op(pair->active.send("hello", 5));
    wait_op(receive);
    cr_assert_not(sleep.told());
    Op& flushed = pair->passive().recv(in.data(), in.size());
    while (sleep.block(0)) {
        pair->far.pump_cq();
    }
    DAT_MUST(pair->passive().dat()->disconnect(pair->passive().get(), FI_DAT_ABRUPT));
    cr_assert(sleep.told()); // the receive was flushed within that call
    wait_op(flushed);
}

TRANSPORT_TEST(dat_queue, an_event_queue__tells_of_events_and_of_new_listeners) {
    SideOptions options;
    options.eq_wait = FI_WAIT_NONE;
    Side side(transport, options);
    Sleep sleep(&side.eq()->fid);
    sleep.block(0);
    sleep.descriptors();
    cr_assert_eq(sleep.ops().arrivals(&side.eq()->fid), -1);
    cr_assert_eq(sleep.ops().arrived(&side.eq()->fid), -FI_EINVAL);
    const auto before = sleep.changes;
    side.listen();
    cr_assert(sleep.told());
    cr_assert_not(sleep.descriptors().empty());
    cr_assert_neq(sleep.changes, before);
}

// Whoever polls may ask for events without a look at where they come from: FI_DAT_QUEUED.
TRANSPORT_TEST(dat_queue, what_is_queued__is_read_without_moving_anything) {
    Side listener(transport);
    Side side(transport);
    listener.listen();
    listener.asleep = true;
    Endpoint asking(side);
    cr_assert_eq(asking.connect(listener), 0);
    const auto comes = [&] {
        for (const int fd : Sleep(&listener.eq()->fid).descriptors()) {
            pollfd polled{fd, POLLIN, 0};
            if (poll(&polled, 1, 0) > 0) {
                return true;
            }
        }
        return false;
    };
    cr_assert(wait_until(comes));
    std::uint32_t type = 0;
    Bytes room(1024);
    cr_assert_eq(fi_eq_read(listener.eq(), &type, room.data(), room.size(), FI_DAT_QUEUED),
                 -FI_EAGAIN);
    listener.asleep = false;
    wait_event(listener, FI_CONNREQ);
}

TRANSPORT_TEST(dat_queue, another_name__is_not_offered) {
    Side side(transport);
    void* ops = nullptr;
    cr_assert_eq(fi_open_ops(&side.cq()->fid, "else", 0, &ops, nullptr), -FI_ENOSYS);
    cr_assert_eq(fi_open_ops(&side.eq()->fid, FI_DAT_EP_OPS, 0, &ops, nullptr), -FI_ENOSYS);
}
