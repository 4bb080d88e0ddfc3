// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite: nothing that was accepted is lost in silence. What has been reported, or never
// is (inject calls, requests without FI_COMPLETION), reaches the peer when its sender closes or
// shuts down at once, also where socket or ring were full; where the peer takes nothing that is
// bounded, told of in the log, and the peer sees no orderly end.
#include "suite.h"

#include <rdma/fi_atomic.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

using namespace dat::test;

namespace {

constexpr std::uint64_t kAll = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
constexpr std::size_t kSmall = 64;
constexpr std::size_t kLarge = 100'000; // over shared memory it stays where it is

// A connection whose near side asks for completions one by one.
struct Scene {
    explicit Scene(const Transport& transport, fi_progress progress) {
        SideOptions options;
        options.caps = FI_MSG | FI_RMA | (transport.device ? 0 : FI_ATOMIC);
        options.progress = progress;
        far.emplace(transport, options);
        options.selective = true;
        near.emplace(transport, options);
        far->listen();
        active.emplace(*near);
        passive.emplace(establish(*active, *far));
        region.emplace(*far, 256 * kSmall, kAll);
        far->intercept = [this](void* context, const Op&) {
            written_with_data += context ? 0 : 1;
            return context == nullptr;
        };
    }
    std::optional<Side> far;
    std::optional<Side> near;
    std::optional<Endpoint> active;
    std::optional<Endpoint> passive;
    std::optional<Region> region; // of the far side
    std::size_t written_with_data = 0;
};

// Message or write number `i`.
Bytes message(std::size_t i, std::size_t size = kSmall) {
    Bytes bytes = pattern(size, static_cast<unsigned>(i % 251));
    const auto number = static_cast<std::uint32_t>(i);
    std::memcpy(bytes.data(), &number, sizeof number);
    return bytes;
}

ssize_t send_plainly(Scene& scene, const Bytes& bytes, std::uint64_t flags, void* context) {
    const iovec iov{const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
    const fi_msg msg{&iov, nullptr, 1, FI_ADDR_UNSPEC, context, 0};
    return fi_sendmsg(scene.active->get(), &msg, flags);
}

// A way to post number `i` without a completion that is waited for. Its memory is spoiled when
// the connection has been ended, so nothing may depend on it.
struct Way {
    const char* name;
    enum class Kind { message, write, write_with_data, atomic } kind;
    ssize_t (*post)(Scene&, std::size_t i, const Bytes&);
};

Remote place(Scene& scene, std::size_t i) {
    return scene.region->at(static_cast<std::int64_t>(i * kSmall));
}

constexpr std::array kWays{
    Way{"fi_inject", Way::Kind::message,
        [](Scene& scene, std::size_t, const Bytes& bytes) {
            return fi_inject(scene.active->get(), bytes.data(), bytes.size(), FI_ADDR_UNSPEC);
        }},
    Way{"fi_injectdata", Way::Kind::message,
        [](Scene& scene, std::size_t i, const Bytes& bytes) {
            return fi_injectdata(scene.active->get(), bytes.data(), bytes.size(), i,
                                 FI_ADDR_UNSPEC);
        }},
    Way{"fi_sendmsg", Way::Kind::message,
        [](Scene& scene, std::size_t, const Bytes& bytes) {
            return send_plainly(scene, bytes, 0, &new_op());
        }},
    Way{"fi_sendmsg with FI_MORE", Way::Kind::message,
        [](Scene& scene, std::size_t, const Bytes& bytes) {
            return send_plainly(scene, bytes, FI_MORE, &new_op());
        }},
    Way{"fi_sendmsg with FI_FENCE", Way::Kind::message,
        [](Scene& scene, std::size_t, const Bytes& bytes) {
            return send_plainly(scene, bytes, FI_FENCE, &new_op());
        }},
    Way{"fi_sendmsg, reported", Way::Kind::message,
        [](Scene& scene, std::size_t, const Bytes& bytes) {
            return send_plainly(scene, bytes, FI_COMPLETION, &new_op());
        }},
    Way{"fi_inject_write", Way::Kind::write,
        [](Scene& scene, std::size_t i, const Bytes& bytes) {
            const Remote to = place(scene, i);
            return fi_inject_write(scene.active->get(), bytes.data(), bytes.size(), FI_ADDR_UNSPEC,
                                   to.address, to.key);
        }},
    Way{"fi_inject_writedata", Way::Kind::write_with_data,
        [](Scene& scene, std::size_t i, const Bytes& bytes) {
            const Remote to = place(scene, i);
            return fi_inject_writedata(scene.active->get(), bytes.data(), bytes.size(), i,
                                       FI_ADDR_UNSPEC, to.address, to.key);
        }},
    Way{"fi_writemsg", Way::Kind::write,
        [](Scene& scene, std::size_t i, const Bytes& bytes) {
            const Remote to = place(scene, i);
            const iovec iov{const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
            const fi_rma_iov rma{to.address, bytes.size(), to.key};
            const fi_msg_rma msg{&iov, nullptr, 1, FI_ADDR_UNSPEC, &rma, 1, nullptr, 0};
            return fi_writemsg(scene.active->get(), &msg, 0);
        }},
    Way{"fi_inject_atomic", Way::Kind::atomic,
        [](Scene& scene, std::size_t, const Bytes&) {
            const Remote to = place(scene, 0);
            const std::uint64_t one = 1;
            return fi_inject_atomic(scene.active->get(), &one, 1, FI_ADDR_UNSPEC, to.address,
                                    to.key, FI_UINT64, FI_SUM);
        }},
};

// What the far side has of `count` messages of a size, in their order, each with its bytes.
class Arrivals {
  public:
    Arrivals(Endpoint& at, std::size_t count, std::size_t size = kSmall)
        : at_(at), buffers_(kRoom, Bytes(size)), ops_(kRoom), wanted_(count), size_(size) {}
    void prepare() {
        while (posted_ < kRoom)
            post();
    }
    // Until the connection has ended here.
    void take_until_the_end() {
        prepare();
        cr_assert(wait_until([this] { return take(); }), "%zu of %zu have come", taken_, wanted_);
    }
    void take_all() {
        take_until_the_end();
        cr_assert_eq(taken_, wanted_, "%zu of %zu have come", taken_, wanted_);
    }
    std::size_t taken() const { return taken_; }

  private:
    static constexpr std::size_t kRoom = 64;
    void post() {
        ops_[posted_ % kRoom] = &at_.recv(buffers_[posted_ % kRoom].data(), size_);
        ++posted_;
    }
    // True: the end has come.
    bool take() {
        for (; ops_[taken_ % kRoom]->ok(); post()) {
            const Bytes& got = buffers_[taken_ % kRoom];
            cr_assert_eq(ops_[taken_ % kRoom]->len, size_);
            cr_assert(got == message(taken_, size_), "message %zu", taken_);
            ++taken_;
        }
        return ops_[taken_ % kRoom]->flushed();
    }
    Endpoint& at_;
    std::vector<Bytes> buffers_;
    std::vector<Op*> ops_;
    std::size_t wanted_;
    std::size_t size_;
    std::size_t posted_ = 0;
    std::size_t taken_ = 0;
};

std::uint64_t word_at(Scene& scene) {
    std::uint64_t word = 0;
    std::memcpy(&word, scene.region->data(), sizeof word);
    return word;
}

void require_arrival(Scene& scene, const Way& way, std::size_t count) {
    Arrivals arrivals(*scene.passive, way.kind == Way::Kind::message ? count : 0);
    arrivals.take_all();
    if (way.kind == Way::Kind::atomic)
        cr_assert_eq(word_at(scene), count, "%s: %zu of %zu", way.name,
                     static_cast<std::size_t>(word_at(scene)), count);
    if (way.kind == Way::Kind::write_with_data)
        cr_assert_eq(scene.written_with_data, count, "%s", way.name);
    if (way.kind != Way::Kind::write && way.kind != Way::Kind::write_with_data)
        return;
    for (std::size_t i = 0; i < count; ++i)
        cr_assert(same(scene.region->data() + i * kSmall, message(i).data(), kSmall), "%s, %zu",
                  way.name, i);
}

// How the near side ends.
enum class Ending { close, shutdown, shutdown_and_close, close_with_domain };
constexpr std::array kEndings{Ending::close, Ending::shutdown, Ending::shutdown_and_close,
                              Ending::close_with_domain};

void end(Scene& scene, Ending how) {
    if (how == Ending::shutdown || how == Ending::shutdown_and_close)
        DAT_MUST(fi_shutdown(scene.active->get(), 0));
    if (how != Ending::shutdown)
        DAT_MUST(scene.active->close());
    if (how == Ending::close_with_domain) {
        scene.active.reset();
        scene.near.reset();
    }
}

// As many as are accepted at once, up to `most`. Nothing is polled.
std::size_t post_many(Scene& scene, const Way& way, std::vector<Bytes>& buffers, std::size_t most) {
    std::size_t count = 0;
    for (; count < most; ++count) {
        buffers.push_back(message(count));
        const ssize_t rc = way.post(scene, count, buffers.back());
        if (rc == -FI_EAGAIN)
            break;
        DAT_MUST(rc);
    }
    return count;
}

// Large unreported messages until none goes any more.
std::size_t fill(Scene& scene, std::vector<Bytes>& buffers) {
    std::size_t count = 0;
    for (unsigned waits = 0; waits < 50; ++count) {
        buffers.push_back(message(count, kLarge));
        ssize_t rc = -FI_EAGAIN;
        for (waits = 0; rc == -FI_EAGAIN && waits < 50; ++waits) {
            scene.near->pump_cq();
            rc = send_plainly(scene, buffers.back(), 0, &new_op());
        }
        if (rc == -FI_EAGAIN) {
            buffers.pop_back();
            return count;
        }
        DAT_MUST(rc);
    }
    return count;
}

void spoil(std::vector<Bytes>& buffers) {
    for (Bytes& buffer : buffers)
        std::fill(buffer.begin(), buffer.end(), std::uint8_t{0xdd});
    buffers.clear();
    buffers.shrink_to_fit();
}

constexpr std::array kModels{FI_PROGRESS_AUTO, FI_PROGRESS_MANUAL};

// What is written to standard error during its life.
class Lines {
  public:
    Lines() {
        std::fflush(stderr);
        before_ = dup(STDERR_FILENO);
        const int fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);
        cr_assert(fd >= 0);
        dup2(fd, STDERR_FILENO);
        file_ = fd;
    }
    ~Lines() {
        dup2(before_, STDERR_FILENO);
        close(before_);
        close(file_);
    }
    Lines(const Lines&) = delete;
    Lines& operator=(const Lines&) = delete;
    std::size_t with(const std::string& words) const {
        std::fflush(stderr);
        std::string all(1 << 16, '\0');
        const ssize_t n = pread(file_, all.data(), all.size(), 0);
        all.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
        std::size_t count = 0;
        for (std::size_t at = 0; (at = all.find(words, at)) != std::string::npos; ++at)
            ++count;
        return count;
    }

  private:
    int before_;
    int file_;
};

void log_warnings() { setenv("FI_LOG_LEVEL", "warn", 1); }

} // namespace

// Each way, each end, both progress models.
TRANSPORT_TEST(owed, posts_right_before_the_end__all_arrive) {
    only_dat();
    constexpr std::size_t kCount = 5;
    for (const fi_progress progress : kModels)
        for (const Way& way : kWays)
            for (const Ending how : kEndings) {
                if (transport.device && way.kind == Way::Kind::atomic)
                    continue;
                Scene scene(transport, progress);
                std::vector<Bytes> buffers;
                cr_assert_eq(post_many(scene, way, buffers, kCount), kCount, "%s", way.name);
                end(scene, how);
                spoil(buffers);
                require_arrival(scene, way, kCount);
            }
}

// A device takes messages as far as there are receives.
TRANSPORT_TEST(owed, posts_to_a_device_right_before_the_end__all_arrive) {
    only_dat();
    constexpr std::size_t kCount = 5;
    for (const Way& way : kWays)
        for (const Ending how : kEndings) {
            if (!transport.device || way.kind == Way::Kind::atomic ||
                way.kind == Way::Kind::write_with_data)
                continue;
            Scene scene(transport, FI_PROGRESS_AUTO);
            Arrivals arrivals(*scene.passive, way.kind == Way::Kind::message ? kCount : 0);
            arrivals.prepare();
            std::vector<Bytes> buffers;
            if (way.post(scene, 0, buffers.emplace_back(message(0))) == -FI_EOPNOTSUPP)
                continue; // data, over siw
            for (std::size_t i = 1; i < kCount; ++i)
                DAT_MUST(way.post(scene, i, buffers.emplace_back(message(i))));
            end(scene, how);
            spoil(buffers);
            arrivals.take_all();
            for (std::size_t i = 0; way.kind == Way::Kind::write && i < kCount; ++i)
                cr_assert(same(scene.region->data() + i * kSmall, message(i).data(), kSmall),
                          "%s, %zu", way.name, i);
        }
}

// The peer is away: more is posted than it serves, or has room for.
TRANSPORT_TEST(owed, as_much_as_may_be_outstanding__all_arrives_later) {
    only_dat();
    for (const fi_progress progress : kModels)
        for (const Way& way : kWays) {
            Scene scene(transport, progress);
            scene.far->asleep = true;
            std::vector<Bytes> buffers;
            const std::size_t count = post_many(scene, way, buffers, 120);
            cr_assert_geq(count, 100, "%s", way.name);
            end(scene, Ending::close);
            spoil(buffers);
            scene.far->asleep = false;
            require_arrival(scene, way, count);
        }
}

// Socket or ring are full of messages that nobody is told of, and large ones.
TRANSPORT_TEST(owed, behind_what_does_not_go_out__arrives_in_order) {
    only_dat();
    for (const fi_progress progress : kModels)
        for (const Ending how : {Ending::close, Ending::shutdown}) {
            Scene scene(transport, progress);
            scene.far->asleep = true;
            std::vector<Bytes> buffers;
            const std::size_t count = fill(scene, buffers);
            cr_assert_geq(count, 100, "%zu", count);
            end(scene, how);
            spoil(buffers);
            scene.far->asleep = false;
            Arrivals arrivals(*scene.passive, count, kLarge);
            arrivals.take_all();
        }
}

// The same, and nothing is left of the near side but its domain's end.
TRANSPORT_TEST(owed, before_the_domain_is_closed_as_well__arrives_all_the_same) {
    only_dat();
    constexpr std::size_t kFirst = 60; // large
    constexpr std::size_t kMessages = 100;
    Scene scene(transport, FI_PROGRESS_AUTO); // who receives does so without being polled
    std::vector<Bytes> in(kMessages, Bytes(kLarge));
    std::vector<Op*> receives;
    for (Bytes& each : in)
        receives.push_back(&scene.passive->recv(each.data(), kLarge));
    std::vector<Bytes> buffers;
    for (std::size_t i = 0; i < kMessages; ++i) {
        buffers.push_back(i < kFirst ? message(i, kLarge) : message(i));
        DAT_MUST(send_plainly(scene, buffers.back(), 0, &new_op()));
    }
    end(scene, Ending::close_with_domain);
    spoil(buffers);
    wait_shutdown(*scene.passive);
    for (std::size_t i = 0; i < kMessages; ++i) {
        const Bytes sent = i < kFirst ? message(i, kLarge) : message(i);
        cr_assert(receives[i]->ok() && std::equal(sent.begin(), sent.end(), in[i].begin()),
                  "message %zu", i);
    }
}

// Reported ones among them, and reads: each completes once, those of which nobody would be told
// arrive in their place, and no memory of the program is touched any more.
TRANSPORT_TEST(owed, with_reported_ones_among_it__completes_each_once) {
    only_dat();
    for (const Ending how : {Ending::close, Ending::shutdown}) {
        Scene scene(transport, transport.progress);
        scene.far->asleep = true;
        std::vector<Bytes> buffers;
        std::vector<Op*> ops;
        std::size_t count = 0;
        std::size_t owed = 0; // messages up to the last that is
        Bytes read_into(kLarge);
        const Remote from = scene.region->at(0);
        for (std::size_t i = 0; i < 128; ++i) { // as many as may be outstanding
            const bool read = i % 10 == 9;
            const bool reported = read || i % 3 == 1;
            const std::uint64_t level = i % 2 ? FI_TRANSMIT_COMPLETE : 0;
            Op* op = &new_op(); // of an unreported one a flush is told
            buffers.push_back(message(count, kLarge));
            DAT_MUST(read ? fi_read(scene.active->get(), read_into.data(), kSmall, nullptr,
                                    FI_ADDR_UNSPEC, from.address, from.key, op)
                          : send_plainly(scene, buffers.back(),
                                         reported ? FI_COMPLETION | level : 0, op));
            count += read ? 0 : 1;
            owed = reported ? owed : count;
            if (reported)
                ops.push_back(op);
        }
        end(scene, how);
        spoil(buffers);
        read_into.assign(read_into.size(), 0x5a);
        scene.near->pump();
        for (const Op* op : ops)
            cr_assert(op->completions == 1 && (op->err == 0 || op->err == FI_ECANCELED));
        scene.far->asleep = false;
        Arrivals arrivals(*scene.passive, count, kLarge);
        arrivals.take_until_the_end();
        cr_assert(arrivals.taken() >= owed && arrivals.taken() <= count, "%zu", arrivals.taken());
        cr_assert(read_into == Bytes(kLarge, 0x5a));
    }
}

// A peer that reads nothing: the end of the domain waits a bounded time, one line says what was
// lost, and the peer, when it looks, sees a reset.
TRANSPORT_TEST(owed, to_a_peer_that_never_reads__is_reset_and_told_of) {
    only_dat();
    log_warnings();
    Scene scene(transport, FI_PROGRESS_MANUAL);
    scene.far->asleep = true;
    std::vector<Bytes> buffers;
    fill(scene, buffers);
    {
        const Lines lines;
        end(scene, Ending::close_with_domain);
        cr_assert_eq(lines.with("a closed connection is reset"), 1);
    }
    spoil(buffers);
    scene.far->asleep = false;
    Bytes in(kLarge);
    std::vector<Op*> receives;
    cr_assert(wait_until([&] {
        if (receives.empty() || receives.back()->done())
            receives.push_back(&scene.passive->recv(in.data(), kLarge));
        return !scene.far->events().empty();
    }));
    wait_event(*scene.far, FI_SHUTDOWN);
    cr_assert_neq(scene.passive->status().reason, FI_DAT_REASON_PEER_CLOSED);
}

// The answer to a read of the peer that it would copy from here is void with the end; what was
// posted behind that answer is not.
TRANSPORT_TEST(owed, behind_an_answer_that_the_peer_has_not_taken__arrives) {
    only_dat();
    constexpr std::size_t kAnswer = 60'000; // more than is copied through shared memory
    SideOptions manual;
    manual.progress = FI_PROGRESS_MANUAL;
    const auto pair = Pair::connected(transport, manual, manual);
    Region region(pair->near, kAnswer, FI_REMOTE_READ);
    std::vector<Bytes> in(3, Bytes(100));
    std::vector<Op*> receives;
    for (Bytes& buffer : in)
        receives.push_back(&pair->passive().recv(buffer.data(), buffer.size()));
    Bytes sink(kAnswer);
    const Op& read = pair->passive().read(sink.data(), kAnswer, region.at(0));
    pair->far.asleep = true;
    for (int i = 0; i < 1000; ++i)
        pair->near.pump();
    for (const Bytes& buffer : in) {
        const Bytes out = pattern(buffer.size());
        DAT_MUST(fi_inject(pair->active.get(), out.data(), out.size(), FI_ADDR_UNSPEC));
    }
    DAT_MUST(pair->active.disconnect(FI_DAT_ABRUPT));
    pair->far.asleep = false;
    wait_shutdown(pair->active);
    wait_shutdown(pair->passive());
    require_once(receives);
    for (std::size_t i = 0; i < in.size(); ++i)
        cr_assert(receives[i]->ok() && in[i] == pattern(100));
    cr_assert_eq(read.completions, 1);
}
