// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite: what FI_RM_ENABLED promises where something runs out. Receives,
// room in queues, descriptors; and how many of everything there may be.
#include "sanitized.h"
#include "suite.h"

#include <malloc.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <utility>

using namespace dat::test;

namespace {

// An operation that keeps the fixture from polling: this side reads nothing meanwhile,
// so its progress thread has to move things.
template <class Call> Op& post_without_polling(Call call) {
    Op& op = new_op();
    ssize_t result = -FI_EAGAIN;
    for (int waits = 0; waits < kWaitMs && result == -FI_EAGAIN; ++waits) {
        result = call(op);
        if (result == -FI_EAGAIN)
            poll(nullptr, 0, 1);
    }
    DAT_MUST(result);
    return op;
}

// The number that a message carries.
void number(Bytes& message, std::uint32_t value) {
    std::memcpy(message.data(), &value, sizeof value);
}
std::uint32_t number(const Bytes& message) {
    std::uint32_t value = 0;
    std::memcpy(&value, message.data(), sizeof value);
    return value;
}

rlim_t descriptor_limit() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur;
}

std::size_t open_descriptors() {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

// The soft limit of open files of this process, the test's own, until the end of scope.
class Descriptors {
  public:
    explicit Descriptors(rlim_t limit) : before_(descriptor_limit()) { set(limit); }
    ~Descriptors() { set(before_); }
    Descriptors(const Descriptors&) = delete;
    Descriptors& operator=(const Descriptors&) = delete;
    // As many as are open, and `more`. What is closed meanwhile leaves no gaps: the
    // limit is that of the number. So what the library still closes of former endpoints comes
    // first.
    static rlim_t open_and(int more) {
        for (std::size_t before = 0; before != open_descriptors();) {
            before = open_descriptors();
            settle(20);
        }
        const int free = dup(STDERR_FILENO);
        close(free);
        return static_cast<rlim_t>(free) + static_cast<rlim_t>(more);
    }

  private:
    static void set(rlim_t value) {
        rlimit limit{};
        getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = std::min(value, limit.rlim_max);
        DAT_MUST(setrlimit(RLIMIT_NOFILE, &limit));
    }
    rlim_t before_;
};

std::size_t allocated() {
    const struct mallinfo2 heap = mallinfo2();
    return heap.uordblks + heap.hblkhd;
}

#ifndef DAT_SANITIZED // under which the largest messages take minutes

// More than 4 GiB of addresses with memory behind their first and last 16 MiB, and behind all
// between them the same 16 MiB again and again. nullptr: there is no room.
class Folded {
  public:
    static constexpr std::size_t kPiece = 16 << 20;
    static constexpr std::size_t kSize = (std::size_t{1} << 32) + kPiece;

    Folded() {
        const int fd = memfd_create("folded", MFD_CLOEXEC);
        void* const at =
            mmap(nullptr, kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at != MAP_FAILED && fd >= 0 && ftruncate(fd, 3 * kPiece) == 0) {
            data_ = static_cast<std::uint8_t*>(at);
            for (std::size_t i = 0; i < kSize / kPiece; ++i) {
                const std::size_t piece = i == 0 ? 0 : i + 1 < kSize / kPiece ? 1 : 2;
                // Populated: a million page faults would take longer than all that is tested.
                if (mmap(data_ + i * kPiece, kPiece, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd,
                         static_cast<off_t>(piece * kPiece)) == MAP_FAILED)
                    whole_ = false;
            }
        }
        close(fd);
    }
    Folded(const Folded&) = delete;
    Folded& operator=(const Folded&) = delete;
    ~Folded() {
        if (data_)
            munmap(data_, kSize);
    }
    std::uint8_t* data() { return whole_ ? data_ : nullptr; }
    // The i-th of the three.
    std::uint8_t* piece(std::size_t i) { return data_ + (i == 2 ? kSize - kPiece : i * kPiece); }
    void fill(unsigned seed) {
        for (std::size_t i = 0; i < 3; ++i) {
            const Bytes bytes = pattern(kPiece, seed + static_cast<unsigned>(i));
            std::copy_n(bytes.data(), kPiece, piece(i));
        }
    }
    // All but the last byte is as there.
    bool same_as(Folded& other) {
        return same(piece(0), other.piece(0), kPiece) && same(piece(1), other.piece(1), kPiece) &&
               same(piece(2), other.piece(2), kPiece - 1);
    }

  private:
    std::uint8_t* data_ = nullptr;
    bool whole_ = true;
};

enum class Largest { send, write, read };

// max_msg_size is all that a length is compared with.
void move_largest(Pair& pair, Largest what, Folded& from, Folded& to, const Remote& at) {
    from.fill(static_cast<unsigned>(what) * 3);
    to.piece(2)[Folded::kPiece - 1] = 0xee;
    const std::size_t size = Folded::kSize - 1;
    const std::size_t limit = pair.near.info()->ep_attr->max_msg_size;
    cr_assert_gt(limit, size);
    fid_ep* const ep = pair.active.get();
    Op* receive = nullptr;
    if (what == Largest::send)
        receive = &pair.passive().recv(to.data(), Folded::kSize);
    const auto post = [&](std::size_t length, Op& op) {
        switch (what) {
        case Largest::send:
            return fi_send(ep, from.data(), length, nullptr, FI_ADDR_UNSPEC, &op);
        case Largest::write:
            return fi_write(ep, from.data(), length, nullptr, FI_ADDR_UNSPEC, at.address, at.key,
                            &op);
        default:
            return fi_read(ep, to.data(), length, nullptr, FI_ADDR_UNSPEC, at.address, at.key, &op);
        }
    };
    cr_assert_eq(post(limit + 1, new_op()), -FI_EMSGSIZE);
    Op& op = new_op();
    DAT_MUST(post(size, op));
    // Behind it: a write has been placed then.
    std::uint8_t note = 0;
    Op& last = pair.passive().recv(&note, 1);
    Op& behind = pair.active.send_confirmed("x", 1);
    while (!op.done() || !behind.done() || !last.done()) // until Criterion ends the test
        settle(20);
    cr_assert(op.ok() && behind.ok() && last.ok());
    cr_assert_eq(op.len, size);
    if (receive)
        cr_assert(receive->ok() && receive->len == size);
    cr_assert(to.same_as(from));
    cr_assert_eq(to.piece(2)[Folded::kPiece - 1], 0xee, "the byte behind it");
}

#endif

} // namespace

// ---- receives ------------------------------------------------------------

// U-9: the sender is told to wait, and everything arrives once there are receives.
TRANSPORT_TEST(limits_receives, none_for_as_long_as_the_sender_may_post__loses_nothing) {
    only_dat();
    constexpr std::size_t kSize = 16 * 1024;
    auto pair = Pair::connected(transport);
    Bytes out(kSize);
    std::deque<Bytes> sent;
    std::vector<Op*> sends;
    bool refused = false;
    while (!refused) {
        number(sent.emplace_back(kSize), static_cast<std::uint32_t>(sends.size()));
        Op& op = new_op();
        ssize_t result = 0;
        refused = !wait_until(
            [&] {
                result = fi_send(pair->active.get(), sent.back().data(), kSize, nullptr, 0, &op);
                return result != -FI_EAGAIN;
            },
            200);
        cr_assert(refused || result == 0);
        if (!refused)
            sends.push_back(&op);
        cr_assert_lt(sends.size(), 20'000);
    }
    Bytes in(kSize);
    for (std::uint32_t i = 0; i < sends.size(); ++i) {
        Op& receive = pair->passive().recv(in.data(), in.size());
        wait_op(receive);
        cr_assert(receive.ok() && receive.len == kSize);
        cr_assert_eq(number(in), i);
    }
    wait_ops(sends);
    require_stream_order(sends);
    for (const Op* op : sends)
        cr_assert(op->ok());
}

// ---- queues --------------------------------------------------------------

// architecture.md: a full CQ loses nothing, and the ending event does not wait for it.
TRANSPORT_TEST(limits_cq, of_size_1_unread_for_thousands__loses_nothing_and_the_end_comes) {
    only_dat();
    constexpr std::size_t kCount = 4000;
    constexpr std::size_t kLeft = 50;
    SideOptions options;
    options.cq_size = 1;
    options.progress = FI_PROGRESS_AUTO;
    auto pair = Pair::connected(transport, options, options);
    pair->near.asleep = pair->far.asleep = true;
    std::uint8_t in = 0;
    const std::uint8_t out = 1;
    std::vector<Op*> receives;
    std::vector<Op*> sends;
    const auto receive = [&] {
        receives.push_back(&post_without_polling(
            [&](Op& op) { return fi_recv(pair->passive().get(), &in, 1, nullptr, 0, &op); }));
    };
    for (std::size_t i = 0; i < kCount; ++i) {
        receive();
        sends.push_back(&post_without_polling(
            [&](Op& op) { return fi_send(pair->active.get(), &out, 1, nullptr, 0, &op); }));
    }
    for (std::size_t i = 0; i < kLeft; ++i)
        receive();
    DAT_MUST(pair->active.disconnect(FI_DAT_GRACEFUL));
    for (Side* side : {&pair->near, &pair->far}) {
        std::optional<Event> ending;
        cr_assert(wait_until([&] { return (ending = side->read_event()).has_value(); }));
        cr_assert_eq(ending->type, FI_SHUTDOWN);
        cr_assert_eq(side->completions(), 0);
        side->pump_cq();
    }
    require_once(sends);
    require_once(receives);
    require_stream_order(sends);
    require_stream_order(receives);
    for (std::size_t i = 0; i < kCount; ++i)
        cr_assert(sends[i]->ok() && receives[i]->ok(), "%zu", i);
    for (std::size_t i = kCount; i < kCount + kLeft; ++i)
        cr_assert(receives[i]->flushed());
}

// U-16: an EQ of size 1 has every event of many connections, in their order.
TRANSPORT_TEST(limits_eq, of_size_1_unread_for_hundreds__loses_nothing) {
    only_dat();
    constexpr std::size_t kCount = 300;
    SideOptions options;
    options.progress = FI_PROGRESS_AUTO;
    options.eq_size = 1;
    Side near(transport, options);
    Side far(transport);
    far.listen();
    near.asleep = true;
    std::vector<Endpoint> active;
    std::vector<Endpoint> passive;
    for (std::size_t i = 0; i < kCount; ++i) {
        active.emplace_back(near);
        DAT_MUST(active.back().connect(far));
        passive.emplace_back(far, wait_event(far, FI_CONNREQ));
        DAT_MUST(passive.back().accept());
        wait_event(far, FI_CONNECTED);
    }
    for (Endpoint& endpoint : passive)
        DAT_MUST(endpoint.close());
    for (const Endpoint& endpoint : active)
        cr_assert(wait_until([&] { return endpoint.status().state == FI_DAT_DISCONNECTED; }));
    near.asleep = false;
    near.pump();
    cr_assert_eq(near.events().size(), 2 * kCount);
    for (const Endpoint& endpoint : active) {
        std::vector<std::uint32_t> types;
        for (const Event& event : near.events())
            if (event.fid == endpoint.fid())
                types.push_back(event.type);
        cr_assert(types == (std::vector<std::uint32_t>{FI_CONNECTED, FI_SHUTDOWN}));
    }
}

// ---- registrations -------------------------------------------------------

// Both kinds of keys; what is closed leaves nothing behind.
TRANSPORT_TEST(limits_mr, a_hundred_thousand_regions__are_told_apart) {
    only_dat();
    constexpr std::size_t kCount = 100'000;
    constexpr std::size_t kSize = 8;
    for (const int mr_mode : {0, static_cast<int>(FI_MR_PROV_KEY)}) {
        SideOptions options;
        options.mr_mode = mr_mode;
        auto pair = Pair::connected(transport, options, options);
        std::vector<std::uint64_t> memory(kCount, 0);
        std::vector<Fid<fid_mr>> regions(kCount);
        const std::size_t before = allocated();
        for (std::size_t i = 0; i < kCount; ++i)
            DAT_MUST(fi_mr_reg(pair->far.domain(), &memory[i], kSize,
                               FI_REMOTE_READ | FI_REMOTE_WRITE, 0, i + 1, 0, regions[i].out(),
                               nullptr));
        if (mr_mode == 0) {
            Fid<fid_mr> again;
            cr_assert_eq(fi_mr_reg(pair->far.domain(), memory.data(), kSize, FI_REMOTE_READ, 0,
                                   kCount, 0, again.out(), nullptr),
                         -FI_ENOKEY);
        }
        for (std::uint64_t i = 0; i < kCount; i += 997) {
            const std::uint64_t value = i + 1;
            wait_op(pair->active.write_confirmed(&value, kSize, {0, fi_mr_key(regions[i].get())}));
        }
        for (std::uint64_t i = 0; i < kCount; ++i)
            cr_assert_eq(memory[i], i % 997 == 0 ? i + 1 : 0);
        for (Fid<fid_mr>& region : regions)
            DAT_MUST(region.close());
        // The table of keys stays as large as it was.
        cr_assert(kSanitized || allocated() <= before + kCount * 32, "%zu more",
                  allocated() - before);
        std::uint64_t in = 0;
        Op& read = pair->active.read(&in, kSize, {0, 1});
        wait_op(read);
        cr_assert_eq(read.err, FI_EACCES);
    }
}

// ---- descriptors ---------------------------------------------------------

// UBSan opens a pipe whenever it looks at the type of an object, and takes it for a
// wrong one if it cannot.
#ifndef DAT_SANITIZED

// Each call says so, changes nothing, and works when there are some again.
TRANSPORT_TEST(limits_descriptors, none_left__is_emfile_and_changes_nothing) {
    only_dat();
    Side near(transport);
    Side far(transport);
    far.listen();
    Endpoint endpoint(near);
    SideOptions other_options;
    Side other(transport, other_options);
    {
        const Descriptors none(Descriptors::open_and(0));
        cr_assert_eq(endpoint.connect(far), -FI_EMFILE);
        require_state(endpoint, FI_DAT_UNCONNECTED);
        Fid<fid_domain> domain;
        cr_assert_eq(fi_domain(near.fabric(), near.info(), domain.out(), nullptr), -FI_EMFILE);
        Fid<fid_eq> eq;
        fi_eq_attr eq_attr{};
        eq_attr.wait_obj = FI_WAIT_FD;
        cr_assert_eq(fi_eq_open(near.fabric(), &eq_attr, eq.out(), nullptr), -FI_EMFILE);
        Fid<fid_cq> cq;
        fi_cq_attr cq_attr{};
        cq_attr.format = FI_CQ_FORMAT_DATA;
        cq_attr.wait_obj = FI_WAIT_FD;
        cr_assert_eq(fi_cq_open(near.domain(), &cq_attr, cq.out(), nullptr), -FI_EMFILE);
        Fid<fid_pep> pep;
        DAT_MUST(fi_passive_ep(near.fabric(), near.info(), pep.out(), nullptr));
        DAT_MUST(fi_pep_bind(pep.get(), &near.eq()->fid, 0));
        cr_assert_eq(fi_listen(pep.get()), -FI_EMFILE);
    }
    settle();
    cr_assert(near.events().empty());
    Endpoint passive = establish(endpoint, far);
    std::uint8_t in = 0;
    Op& receive = passive.recv(&in, 1);
    wait_op(endpoint.send("x", 1));
    wait_op(receive);
    cr_assert(receive.ok());
}

// Half-made objects leave no descriptor open, however many there are left.
TRANSPORT_TEST(limits_descriptors, a_few_left__are_all_given_back) {
    only_dat();
    Side near(transport);
    Side far(transport);
    far.listen();
    const std::size_t before = open_descriptors();
    for (int left = 0; left < 8; ++left) {
        const Descriptors few(Descriptors::open_and(left));
        Fid<fid_domain> domain;
        const int opened = fi_domain(near.fabric(), near.info(), domain.out(), nullptr);
        cr_assert(opened == 0 || opened == -FI_EMFILE, "%d", opened);
        domain.close();
        Fid<fid_eq> eq;
        fi_eq_attr eq_attr{};
        const int queue = fi_eq_open(near.fabric(), &eq_attr, eq.out(), nullptr);
        cr_assert(queue == 0 || queue == -FI_EMFILE, "%d", queue);
        eq.close();
        Fid<fid_pep> pep;
        DAT_MUST(fi_passive_ep(near.fabric(), near.info(), pep.out(), nullptr));
        DAT_MUST(fi_pep_bind(pep.get(), &near.eq()->fid, 0));
        const int listening = fi_listen(pep.get());
        cr_assert(listening == 0 || listening == -FI_EMFILE, "%d", listening);
        pep.close();
    }
    cr_assert_eq(open_descriptors(), before);
}

// An attempt to connect while the process has one descriptor left, which the attempt takes: true,
// and the request waits. False, and it is made after all: a thread of the library has opened or
// closed one of its own meanwhile.
bool connect_with_one_left(Endpoint& endpoint, Side& near, Side& far) {
    int rc = 0;
    {
        const Descriptors one(Descriptors::open_and(1));
        rc = endpoint.connect(far);
        settle();
        if (rc == 0 && far.events().empty()) {
            cr_assert(near.events().empty());
            require_state(endpoint, FI_DAT_ACTIVE_CONNECTION_PENDING);
            return true;
        }
    }
    cr_assert(rc == 0 || rc == -FI_EMFILE, "%d", rc);
    if (rc != 0)
        DAT_MUST(endpoint.connect(far));
    return false;
}

// The peer has one, this side has none for its connection: it waits.
TRANSPORT_TEST(limits_descriptors, none_for_an_arriving_request__it_comes_when_there_is_one) {
    only_dat();
    Side near(transport);
    Side far(transport);
    far.listen();
    Endpoint first(near);
    const Endpoint to_first = establish(first, far); // what a domain takes once is there
    bool waited = false;
    for (int attempts = 0; !waited && attempts < 20; ++attempts) {
        Endpoint endpoint(near);
        waited = connect_with_one_left(endpoint, near, far);
        const Event request = wait_event(far, FI_CONNREQ);
        Endpoint passive(far, request);
        DAT_MUST(passive.accept());
        wait_event(near, FI_CONNECTED);
        wait_event(far, FI_CONNECTED);
    }
    cr_assert(waited);
    Endpoint other(near);
    const Endpoint also = establish(other, far);
}

#endif

// ---- endpoints -----------------------------------------------------------

// As many connections as the limit on open files lets be, and then a refusal; each of
// them works, and what they took is given back. Two domains that share memory share its
// descriptors.
TRANSPORT_TEST(limits_endpoints, thousands_at_once__work_up_to_the_limit) {
    only_dat();
    const Descriptors limited(4096);
    Side near(transport);
    Side far(transport);
    far.listen();
    Endpoint last(near);
    const Endpoint first = establish(last, far); // what a domain opens with its first
    const std::size_t before = open_descriptors();
    // Both ends are here. While one comes to share memory it has a few descriptors more.
    const std::size_t spare = transport.shm ? 6 : 0;
    const std::size_t most = descriptor_limit() - before - spare;
    const std::size_t count = most / 2;
    cr_assert_geq(count, 1000, "the limit on open files is %zu",
                  static_cast<std::size_t>(descriptor_limit()));
    std::deque<Endpoint> active;
    std::deque<Endpoint> passive;
    for (std::size_t i = 0; i < count; ++i)
        passive.push_back(establish(active.emplace_back(near), far));
    std::vector<int> rest; // the odd one; where memory is shared, all: a connection has none there
    for (int fd = 0; (fd = dup(STDERR_FILENO)) >= 0;)
        rest.push_back(fd);
    cr_assert(transport.shm ? rest.size() >= most : rest.size() <= 2, "%zu of %zu are left",
              rest.size(), most);
    Endpoint refused(near);
    if (!kSanitized)
        cr_assert_eq(refused.connect(far), -FI_EMFILE);
    for (const int fd : rest)
        close(fd);

    Bytes in(count);
    std::vector<Op*> receives;
    std::vector<Op*> sends;
    for (std::size_t i = 0; i < count; ++i) {
        receives.push_back(&passive[i].recv(&in[i], 1));
        sends.push_back(&active[i].send("x", 1));
    }
    wait_ops(receives);
    wait_ops(sends);
    cr_assert(in == Bytes(count, 'x'));
    for (Endpoint& endpoint : active)
        DAT_MUST(endpoint.close());
    for (std::size_t i = 0; i < count; ++i)
        wait_event(far, FI_SHUTDOWN);
    passive.clear();
    cr_assert(wait_until([&] { return open_descriptors() <= before; }), "%zu descriptors, not %zu",
              open_descriptors(), before);
    const Endpoint again = establish(refused, far);
}

#ifndef DAT_SANITIZED
// Where an offset of 32 bits in a message, and the size of a read in as many, come to their end.
// One test for all three, over each kind of link, since what takes longest is that memory is
// touched for the first time. Two of these run at once: where the kernel moves 30 MB a second for
// each of them, on two processors, neither is done after two minutes.
TRANSPORT_TEST_WITHIN(600, limits_size, of_a_message_a_write_and_a_read__is_beyond_4_gib) {
    only_dat();
    static bool moved = false;
    if (transport.device)
        cr_skip_test("a device holds all of it in memory");
    if (std::exchange(moved, true))
        return;
    Folded from;
    Folded to;
    if (!from.data() || !to.data())
        cr_skip_test("there is no room for 8 GiB of addresses");
    auto pair = Pair::connected(transport);
    const auto registered = [&](Folded& memory, std::uint64_t key) {
        Fid<fid_mr> mr;
        DAT_MUST(fi_mr_reg(pair->far.domain(), memory.data(), Folded::kSize,
                           FI_REMOTE_READ | FI_REMOTE_WRITE, 0, key, 0, mr.out(), nullptr));
        return mr;
    };
    const Fid<fid_mr> source = registered(from, 5);
    const Fid<fid_mr> target = registered(to, 6);
    for (const Largest what : {Largest::send, Largest::write, Largest::read}) {
        fid_mr* const remote = what == Largest::read ? source.get() : target.get();
        move_largest(*pair, what, from, to, {0, fi_mr_key(remote)});
    }
}
#endif
