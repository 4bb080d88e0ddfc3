// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Another user of the same host, who finds the local listener by its name and brings what he likes:
// he gets nothing in, and stops nothing. With a kernel that keeps descriptors out, and as
// one that cannot. Needs root, to become that user.
#include "../transport/sanitized.h"
#include "../transport/usage.h"
#include "engine_shm.h"

#include "links/iwarp/connect.h"
#include "links/shm/joining.h"
#include "links/shm/local_listener.h"
#include "links/shm/local_socket.h"

#include <arpa/inet.h>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <functional>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

using namespace engine_test;
using dat::test::open_descriptors;

namespace {

// As before Linux 6.16.
bool old_kernel = false;

} // namespace

// In place of the C library's.
extern "C" int setsockopt(int fd, int level, int name, const void* value, socklen_t size) noexcept {
    constexpr int kPassRights = 83;
    if (old_kernel && level == SOL_SOCKET && name == kPassRights) {
        errno = ENOPROTOOPT;
        return -1;
    }
    return static_cast<int>(syscall(SYS_setsockopt, fd, level, name, value, size));
}

namespace {

constexpr uid_t kNobody = 65534;

dat::engine::Domain::Options sharing(dat::engine::ShmPeers peers = dat::engine::ShmPeers::user) {
    auto o = options();
    o.settings.shm = true;
    o.settings.shm_peers = peers;
    o.settings.handshake_limit = std::chrono::seconds(5);
    return o;
}

// Two domains of this process, and connections between them.
struct Victim {
    explicit Victim(dat::engine::ShmPeers peers = dat::engine::ShmPeers::user)
        : near_domain(sharing(peers)), far_domain(sharing(peers)) {}

    // One more, to that port or to its own; on what it is.
    dat::engine::LinkKind connect(Side& near, Side& far, std::uint16_t port = 0) {
        dat::net::SocketAddress to = requests.listener.name();
        if (port != 0) {
            to.set_port(port);
        }
        cr_assert_eq(dat::iwarp::connect(near.endpoint, to, nullptr, bytes("please"), {}), 0);
        cr_assert(run([&] { return requests.arrived != nullptr; }));
        cr_assert_eq(dat::iwarp::accept(far.endpoint, *requests.arrived, bytes("welcome")), 0);
        cr_assert(run([&] { return near.connected() && far.connected(); }));
        requests.arrived.reset();
        cr_assert(near.kind == far.kind);
        return near.kind;
    }
    template <class Done> bool run(Done done) {
        return run_until(near_domain, done, [&] {
            requests.listener.progress();
            const dat::engine::BiasedLockOwner inside(far_domain.biased_lock());
            far_domain.progress();
        });
    }
    // So many messages each way.
    bool talks(Side& near, Side& far, int rounds) {
        for (int i = 0; i < rounds; ++i) {
            for (Side* from : {&near, &far}) {
                Side& to = from == &near ? far : near;
                Bytes in(5);
                to.receive(in);
                from->send<dat::engine::Link>(bytes("hello"));
                if (!run([&] { return to.receives.size() == 1 && from->requests.size() == 1; })) {
                    return false;
                }
                to.receives.take();
                from->requests.take();
                if (text(in) != "hello") {
                    return false;
                }
            }
        }
        return true;
    }

    Requests requests;
    OpenDomain near_domain;
    OpenDomain far_domain;
};

// A child that does `run` as another user, and ends with this process at the latest.
class Neighbour {
  public:
    explicit Neighbour(const std::function<void()>& run, uid_t user = kNobody) {
        pid_ = fork();
        cr_assert_geq(pid_, 0);
        if (pid_ == 0) {
            if (setresgid(user, user, user) != 0 || setresuid(user, user, user) != 0) {
                _exit(2);
            }
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            run();
            _exit(0);
        }
    }
    ~Neighbour() {
        if (pid_ > 0) {
            kill(pid_, SIGKILL);
            waitpid(pid_, nullptr, 0);
        }
    }
    bool has_ended() {
        int status = 0;
        if (pid_ > 0 && waitpid(pid_, &status, WNOHANG) == pid_) {
            pid_ = 0;
            cr_assert_eq(status, 0);
        }
        return pid_ == 0;
    }

  private:
    pid_t pid_ = 0;
};

void require_root() {
    if (geteuid() != 0) {
        cr_skip_test("needs root");
    }
}

void must(bool what) {
    if (!what) {
        _exit(3);
    }
}

sockaddr_un local_listener_address(std::span<const std::byte> name, socklen_t& size) {
    std::array<std::uint64_t, 2> words{};
    std::memcpy(words.data(), name.data(), sizeof words);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const int length = std::snprintf(
        address.sun_path + 1, sizeof address.sun_path - 1, "dat-%016llx%016llx",
        static_cast<unsigned long long>(words[0]), static_cast<unsigned long long>(words[1]));
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                  static_cast<std::size_t>(length));
    return address;
}

int visit(const shm::Offer& offer) {
    socklen_t size = 0;
    const sockaddr_un address = local_listener_address(offer, size);
    const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
    must(fd >= 0);
    return ::connect(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0 ? fd
                                                                                 : (close(fd), -1);
}

// A message with so many times that descriptor.
bool pass(int socket, std::span<const std::byte> bytes, int fd, std::size_t count) {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(253 * sizeof(int))> room{};
    iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (count > 0) {
        message.msg_control = room.data();
        message.msg_controllen = CMSG_SPACE(count * sizeof fd);
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(count * sizeof fd);
        for (std::size_t i = 0; i < count; ++i) {
            std::memcpy(CMSG_DATA(header) + i * sizeof fd, &fd, sizeof fd);
        }
    }
    return ::sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

// A socket whose last close sleeps for a minute: nobody reads what it still has to send.
struct Lingering {
    Lingering() {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        listener = ::socket(AF_INET, SOCK_STREAM, 0);
        must(::bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0);
        must(::listen(listener, 1) == 0);
        must(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0);
        fd = ::socket(AF_INET, SOCK_STREAM, 0);
        must(::connect(fd, reinterpret_cast<sockaddr*>(&address), size) == 0);
        const linger on{1, 60};
        must(setsockopt(fd, SOL_SOCKET, SO_LINGER, &on, sizeof on) == 0);
        const std::array<char, 65536> some{};
        while (::send(fd, some.data(), some.size(), MSG_DONTWAIT) > 0) {
        }
    }
    int listener;
    int fd;
};

struct Nobody final : shm::Host {
    void invited() override { ++invitations; }
    void stayed_out() override { ++refusals; }
    void joined(shm::Joint) override { ++joints; }
    int all() const { return invitations + refusals + joints; }
    int invitations = 0;
    int refusals = 0;
    int joints = 0;
};

shm::Hello right_hello(const shm::Offer& offer, const shm::TcpEnds& ends) {
    shm::Hello hello;
    std::memcpy(&hello.cookie, offer.data() + 16, sizeof hello.cookie);
    hello.ends = ends;
    return hello;
}

// What other users say is not even read: they come with the right cookie.
void passes_descriptors(uid_t user) {
    Victim victim;
    Side near(victim.near_domain);
    Side far(victim.far_domain);
    cr_assert(victim.connect(near, far) == dat::engine::LinkKind::shm);
    Nobody host;
    const shm::Offer offer = shm::LocalListener::of(victim.far_domain)->offer(host, {});
    cr_assert(victim.talks(near, far, 1));
    const std::size_t before = open_descriptors();
    Neighbour neighbour(
        [&] {
            shm::Hello hello = right_hello(offer, {});
            hello.cookie ^= user == kNobody ? 0 : 1;
            for (const std::size_t count : {0u, 1u, 2u, 3u, 253u}) {
                for (int i = 0; i < 8; ++i) {
                    const int socket = visit(offer);
                    must(socket >= 0);
                    pass(socket, std::as_bytes(std::span(&hello, 1)), STDERR_FILENO, count);
                    pass(socket, bytes("something"), STDERR_FILENO, 0);
                    char answer = 0;
                    must(::recv(socket, &answer, 1, 0) <= 0); // nothing, and the end
                    close(socket);
                }
            }
        },
        user);
    cr_assert(victim.run([&] { return neighbour.has_ended(); }));
    cr_assert_eq(host.all(), 0);
    cr_assert(victim.run([&] { return open_descriptors() <= before; }), "%zu descriptors, not %zu",
              open_descriptors(), before);
    cr_assert(victim.talks(near, far, 10));
    Side more_near(victim.near_domain);
    Side more_far(victim.far_domain);
    cr_assert(victim.connect(more_near, more_far) == dat::engine::LinkKind::shm);
}

// What sleeps as it is closed holds up nobody. `early`: before the local listener looks.
void passes_what_lingers(bool early) {
    Victim victim;
    Side near(victim.near_domain);
    Side far(victim.far_domain);
    cr_assert(victim.connect(near, far) == dat::engine::LinkKind::shm);
    Nobody host;
    const shm::Offer offer = shm::LocalListener::of(victim.far_domain)->offer(host, {});
    int ready[2];
    cr_assert_eq(pipe2(ready, O_NONBLOCK), 0);
    Neighbour neighbour([&] {
        const Lingering slow;
        const shm::Hello hello = right_hello(offer, {});
        bool passed = false;
        for (int i = 0; i < 3; ++i) {
            const int socket = visit(offer);
            must(socket >= 0);
            passed |= pass(socket, std::as_bytes(std::span(&hello, 1)), slow.fd, 1);
            close(socket);
        }
        // Early, the last references are those that were passed. Later the local listener may have
        // closed them all already: then it is this close that sleeps, so it comes last.
        if (early && passed) {
            close(slow.fd);
        }
        must(write(ready[1], "x", 1) == 1);
        if (!early && passed) {
            close(slow.fd);
        }
        for (;;) {
            pause();
        }
    });
    char done = 0;
    if (early) {
        pollfd wait{ready[0], POLLIN, 0};
        cr_assert_eq(poll(&wait, 1, 20'000), 1);
    }
    cr_assert(victim.run([&] { return read(ready[0], &done, 1) == 1; }));
    cr_assert(victim.talks(near, far, 1000));
    Side more_near(victim.near_domain);
    Side more_far(victim.far_domain);
    cr_assert(victim.connect(more_near, more_far) == dat::engine::LinkKind::shm);
    cr_assert(victim.talks(more_near, more_far, 10));
    cr_assert_eq(host.all(), 0);
}

// A local listener of this process that is none of a domain, with memory to give.
struct FalseListener {
    explicit FalseListener(int step) {
        int fd = -1;
        int error = 0;
        segment = shm::Segment::create(fd, error);
        memory = dat::net::Socket(fd);
        for (std::size_t i = 0; i < offer.size(); ++i) {
            offer[i] = static_cast<std::byte>(getpid() + step * static_cast<int>(i));
        }
        socklen_t size = 0;
        const sockaddr_un address = local_listener_address(offer, size);
        socket = dat::net::Socket(::socket(AF_UNIX, SOCK_SEQPACKET, 0));
        cr_assert_eq(::bind(socket.fd(), reinterpret_cast<const sockaddr*>(&address), size), 0);
        cr_assert_eq(::listen(socket.fd(), 8), 0);
    }
    dat::net::Socket let_in() { return dat::net::Socket(::accept(socket.fd(), nullptr, nullptr)); }

    // What a local listener says that gives its memory.
    std::span<const std::byte> right() const { return std::as_bytes(std::span(&welcome, 1)); }

    shm::Offer offer;
    dat::net::Socket socket;
    shm::Segment segment;
    dat::net::Socket memory;
    const shm::Welcome welcome;
};

// One who has been let in rings with what sleeps as it is closed, where the kernel cannot refuse
// it. `looks`: before the connection ends.
void rings_with_what_lingers(bool looks) {
    old_kernel = true;
    Raw raw;
    int ready[2];
    cr_assert_eq(pipe(ready), 0);
    Neighbour neighbour(
        [&] {
            // Not to have the other end of the wake socket as well.
            for (int fd = STDERR_FILENO + 1; fd < 256; ++fd) {
                if (fd != raw.wake_socket.fd() && fd != ready[1]) {
                    close(fd);
                }
            }
            const Lingering slow;
            for (const std::size_t count : {1u, 2u}) {
                must(pass(raw.wake_socket.fd(), bytes("x"), slow.fd, count));
            }
            close(slow.fd); // the last references are those that were passed
            must(write(ready[1], "x", 1) == 1);
            for (;;) {
                pause();
            }
        },
        geteuid());
    char one = 0;
    cr_assert_eq(read(ready[0], &one, 1), 1);
    if (looks) {
        cr_assert(raw.run([&] { return raw.side.ended(); }));
        cr_assert_eq(raw.side.events.back().reason, dat::core::Reason::peer_reset);
        return;
    }
    const dat::engine::BiasedLockOwner inside(raw.domain.biased_lock());
    raw.side.endpoint.disconnect(false);
    cr_assert(raw.side.ended());
}

// Another user who has the name of a port's local stream, proposes what a guest would, and passes
// what sleeps as it is closed.
void proposes() {
    Victim victim;
    Side near(victim.near_domain);
    Side far(victim.far_domain);
    cr_assert(victim.connect(near, far) == dat::engine::LinkKind::shm);
    const dat::net::SocketAddress to = victim.requests.listener.name();
    const auto* const known =
        shm::LocalListener::at(victim.near_domain).known_listeners().at(to, nullptr);
    cr_assert(known);
    shm::Proposal proposal;
    proposal.ends = shm::ends_of(to, to);
    proposal.ends.initiator.port = 40000;
    proposal.peering = known->peering->id();
    sockaddr_un address;
    const socklen_t size = shm::address_of(known->name, address);
    const std::size_t before = open_descriptors();
    Neighbour neighbour([&] {
        const Lingering slow;
        std::array<std::byte, sizeof proposal + dat::iwarp::kMpaMaxFrameSize> said;
        std::memcpy(said.data(), &proposal, sizeof proposal);
        dat::iwarp::MpaFrame frame;
        frame.from_dat = frame.wide = frame.memory = true;
        const std::size_t length =
            sizeof proposal +
            dat::iwarp::encode_mpa_frame(frame, std::span(said).subspan(sizeof proposal));
        for (std::size_t i = 0; i < 8; ++i) {
            const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
            must(::connect(socket, reinterpret_cast<const sockaddr*>(&address), size) == 0);
            pass(socket, std::span(said).first(length), slow.fd, i % 2);
            char answer = 0;
            must(::recv(socket, &answer, 1, 0) <= 0); // nothing, and the end
            close(socket);
        }
        _exit(0); // the descriptor is the kernel's to close
    });
    cr_assert(victim.run([&] { return neighbour.has_ended(); }));
    cr_assert_not(victim.requests.arrived);
    cr_assert(victim.run([&] { return open_descriptors() <= before; }));
    cr_assert(victim.talks(near, far, 10));
    Side more_near(victim.near_domain);
    Side more_far(victim.far_domain);
    cr_assert(victim.connect(more_near, more_far) == dat::engine::LinkKind::shm);
}

} // namespace

Test(engine_shm_neighbour, a_stranger_at_a_local_stream__is_left_unread, .timeout = 60) {
    require_root();
    proposes();
}

Test(engine_shm_neighbour, a_stranger_at_a_local_stream__is_left_unread_by_an_old_kernel,
     .timeout = 60) {
    require_root();
    old_kernel = true;
    proposes();
}

Test(engine_shm_neighbour, descriptors_in_any_number__are_not_taken, .timeout = 60) {
    require_root();
    passes_descriptors(kNobody);
    passes_descriptors(0);
}

Test(engine_shm_neighbour, descriptors_in_any_number__are_not_taken_by_an_old_kernel,
     .timeout = 60) {
    require_root();
    old_kernel = true;
    passes_descriptors(kNobody);
    passes_descriptors(0);
}

Test(engine_shm_neighbour, a_descriptor_that_sleeps_in_close__stops_nothing, .timeout = 60) {
    require_root();
    passes_what_lingers(false);
    passes_what_lingers(true);
}

Test(engine_shm_neighbour, a_descriptor_that_sleeps_in_close__stops_nothing_on_an_old_kernel,
     .timeout = 60) {
    require_root();
    old_kernel = true;
    passes_what_lingers(false);
    passes_what_lingers(true);
}

// More come than the thread that closes takes, which is held up by the first: the others wait
// outside.
Test(engine_shm_neighbour, a_crowd_behind_a_descriptor_that_sleeps_in_close__waits_outside,
     .timeout = 60) {
    require_root();
    old_kernel = true;
    Victim victim;
    Side near(victim.near_domain);
    Side far(victim.far_domain);
    cr_assert(victim.connect(near, far) == dat::engine::LinkKind::shm);
    Nobody host;
    const shm::Offer offer = shm::LocalListener::of(victim.far_domain)->offer(host, {});
    int ready[2];
    int go[2];
    cr_assert(pipe(ready) == 0 && pipe(go) == 0);
    const std::size_t before = open_descriptors();
    Neighbour neighbour([&] {
        char one = 0;
        const Lingering first;
        const Lingering last;
        const auto come = [&](int fd) { must(pass(visit(offer), bytes("x"), fd, fd < 0 ? 0 : 1)); };
        come(first.fd);
        close(first.fd); // the last references are those that were passed
        must(write(ready[1], "x", 1) == 1 && read(go[0], &one, 1) == 1);
        for (int i = 0; i < 300; ++i) {
            come(-1);
        }
        for (int i = 0; i < 30; ++i) {
            come(last.fd);
        }
        close(last.fd);
        must(write(ready[1], "x", 1) == 1);
        for (;;) {
            pause();
        }
    });
    char one = 0;
    cr_assert_eq(read(ready[0], &one, 1), 1);
    cr_assert(victim.talks(near, far, 10));
    cr_assert(victim.run([&] { return open_descriptors() == before; })); // it is being closed
    cr_assert_eq(write(go[1], "x", 1), 1);
    cr_assert_eq(read(ready[0], &one, 1), 1);
    cr_assert(victim.talks(near, far, 1000));
    cr_assert_eq(host.all(), 0);
}

// A guest that goes, its welcome unread, with a descriptor in its last message: the kernel tells of
// the first before it tells of the second, and no reference is dropped here.
Test(engine_shm_neighbour, a_descriptor_of_one_who_has_gone__is_left_unread, .timeout = 60) {
    old_kernel = true;
    OpenDomain domain(sharing());
    Nobody host;
    const shm::Offer offer = shm::LocalListener::of(domain)->offer(host, {});
    const shm::Hello hello = right_hello(offer, {});
    const shm::Joined joined;
    {
        const dat::net::Socket guest(visit(offer));
        cr_assert(pass(guest.fd(), std::as_bytes(std::span(&hello, 1)), -1, 0));
        cr_assert(run_until(domain, [&] { return host.invitations == 1; }));
        cr_assert(pass(guest.fd(), std::as_bytes(std::span(&joined, 1)), STDERR_FILENO, 1));
    }
    cr_assert(run_until(domain, [&] { return host.refusals + host.joints == 1; }));
    cr_assert_eq(host.joints, 0);
}

// What is passed by the wake socket of a connection holds up neither its progress nor its end.
Test(engine_shm_neighbour, a_descriptor_that_comes_with_a_ring__ends_the_connection,
     .timeout = 40) {
    rings_with_what_lingers(true);
}
Test(engine_shm_neighbour, a_descriptor_that_is_left_in_a_bell__holds_up_no_end, .timeout = 40) {
    rings_with_what_lingers(false);
}

// Thousands stand at the local listener and come again: the domain goes on, and who is wanted gets
// in.
Test(engine_shm_neighbour, strangers_that_flood_the_local_listener__stop_nothing, .timeout = 60) {
    require_root();
    Victim victim;
    Side near(victim.near_domain);
    Side far(victim.far_domain);
    cr_assert(victim.connect(near, far) == dat::engine::LinkKind::shm);
    Nobody host;
    const shm::Offer offer = shm::LocalListener::of(victim.far_domain)->offer(host, {});
    Neighbour neighbour([&] {
        for (;;) {
            const int socket = visit(offer);
            if (socket >= 0) {
                close(socket);
            }
        }
    });
    cr_assert(victim.talks(near, far, 1000));
    for (int i = 0; i < 20; ++i) {
        Side more_near(victim.near_domain);
        Side more_far(victim.far_domain);
        victim.connect(more_near, more_far);
        cr_assert(victim.talks(more_near, more_far, 1));
    }
    cr_assert_not(neighbour.has_ended());
}

// Who owns a local listener is asked for before anything is taken from there: a responder of
// another user offers memory, and the connection stays on TCP.
Test(engine_shm_neighbour, a_local_listener_of_another_user__is_left_unread, .timeout = 60) {
    require_root();
    for (const bool old : {false, true}) {
        old_kernel = old;
        OpenDomain domain(sharing());
        shm::Offer offer;
        for (std::size_t i = 0; i < offer.size(); ++i) {
            offer[i] = static_cast<std::byte>(getpid() + 7 * static_cast<int>(i) + (old ? 1 : 0));
        }
        int ready[2];
        cr_assert_eq(pipe(ready), 0);
        Neighbour neighbour([&] {
            const Lingering slow;
            socklen_t size = 0;
            const sockaddr_un address = local_listener_address(offer, size);
            const int local_listener = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
            must(::bind(local_listener, reinterpret_cast<const sockaddr*>(&address), size) == 0);
            must(::listen(local_listener, 8) == 0);
            must(write(ready[1], "x", 1) == 1);
            const int guest = ::accept(local_listener, nullptr, nullptr);
            const shm::Welcome welcome;
            for (const std::size_t count : {1u, 2u, 253u}) {
                pass(guest, std::as_bytes(std::span(&welcome, 1)), slow.fd, count);
            }
            close(slow.fd);
            for (;;) {
                pause();
            }
        });
        char one = 0;
        cr_assert_eq(read(ready[0], &one, 1), 1);
        shm::Joint joint;
        cr_assert_not(shm::join_host(domain, offer, {}, joint));
        cr_assert_not(joint.wake_socket);
    }
}

// A local listener of the same user that gives something else than the memory: nothing of it stays.
Test(engine_shm_neighbour, a_local_listener_that_gives_other_descriptors__is_left, .timeout = 60) {
    OpenDomain domain(sharing());
    FalseListener local_listener(11);
    const auto right = local_listener.right();
    const int memory = local_listener.memory.fd();
    shm::Welcome other; // of another version's layout
    ++other.magic;
    const auto another = std::as_bytes(std::span(&other, 1));
    struct Case {
        std::span<const std::byte> says;
        int fd;
        std::size_t count;
        shm::Answer answer;
    };
    const std::size_t before = open_descriptors();
    for (const Case& c : {Case{right, STDERR_FILENO, 0, shm::Answer::refused},
                          {right, STDERR_FILENO, 1, shm::Answer::refused},
                          {right, memory, 2, shm::Answer::refused},
                          {right, memory, 3, shm::Answer::refused},
                          {right, memory, 253, shm::Answer::refused},
                          {right.first(8), memory, 1, shm::Answer::refused},
                          {another, memory, 1, shm::Answer::refused},
                          {bytes("x"), memory, 253, shm::Answer::refused},
                          {bytes(""), memory, 1, shm::Answer::refused},
                          {bytes(""), STDERR_FILENO, 253, shm::Answer::refused},
                          {right, memory, 1, shm::Answer::welcome}}) {
        shm::Joint joint;
        cr_assert(shm::join_host(domain, local_listener.offer, {}, joint));
        const dat::net::Socket guest = local_listener.let_in();
        cr_assert(pass(guest.fd(), c.says, c.fd, c.count));
        cr_assert(shm::welcomed(domain, joint) == c.answer, "%zu descriptors", c.count);
        shm::leave(domain, joint);
    }
    cr_assert(run_until(domain, [&] { return open_descriptors() == before; }));
}

// Where the kernel can refuse them, whoever sends some is told, and nothing has to be looked at.
// Where it cannot, they reach the local listener, of which the tests above tell.
Test(engine_shm_neighbour, descriptors_for_a_local_listener__are_refused_by_a_kernel_that_can) {
    constexpr int kPassRights = 83;
    const dat::net::Socket plain(::socket(AF_UNIX, SOCK_SEQPACKET, 0));
    int value = 0;
    socklen_t size = sizeof value;
    const bool can = getsockopt(plain.fd(), SOL_SOCKET, kPassRights, &value, &size) == 0;
    OpenDomain domain(sharing());
    Nobody host;
    const shm::Offer offer = shm::LocalListener::of(domain)->offer(host, {});
    const dat::net::Socket guest(visit(offer));
    cr_assert_eq(pass(guest.fd(), bytes("x"), STDERR_FILENO, 1), !can);
    cr_assert(!can || errno == EPERM);
    cr_assert(pass(guest.fd(), bytes("x"), -1, 0));
}

#ifndef DAT_SANITIZED // a sanitizer needs descriptors to check what it checks

// Two descriptors, of which there is room for one alone: the kernel says that it has cut the
// message.
Test(engine_shm_neighbour, a_local_listener_whose_descriptors_find_no_room__is_left,
     .timeout = 60) {
    OpenDomain domain(sharing());
    FalseListener local_listener(17);
    shm::Joint joint;
    cr_assert(shm::join_host(domain, local_listener.offer, {}, joint));
    const dat::net::Socket guest = local_listener.let_in();
    cr_assert(pass(guest.fd(), local_listener.right(), local_listener.memory.fd(), 2));
    const rlimit few{64, 64};
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    std::vector<dat::net::Socket> all;
    for (int fd = 0; (fd = dup(STDERR_FILENO)) >= 0;) {
        all.emplace_back(fd);
    }
    all.pop_back();
    cr_assert(shm::welcomed(domain, joint) == shm::Answer::refused);
    all.clear();
    shm::leave(domain, joint);
}

#endif

// One in between hands the offer of one process to another: they are not joined, and both
// stay with whom they have connected to.
Test(engine_shm_neighbour, a_relay_between_two_processes__does_not_join_them, .timeout = 60) {
    Victim victim;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    const dat::net::Socket listener(::socket(AF_INET, SOCK_STREAM, 0));
    cr_assert_eq(::bind(listener.fd(), reinterpret_cast<sockaddr*>(&address), size), 0);
    cr_assert_eq(::listen(listener.fd(), 1), 0);
    cr_assert_eq(getsockname(listener.fd(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    const dat::net::SocketAddress target = victim.requests.listener.name();
    Neighbour neighbour(
        [&] {
            const int from = ::accept(listener.fd(), nullptr, nullptr);
            const int to = ::socket(AF_INET, SOCK_STREAM, 0);
            must(::connect(to, target.get(), target.size()) == 0);
            std::array<pollfd, 2> both{{{from, POLLIN, 0}, {to, POLLIN, 0}}};
            while (poll(both.data(), both.size(), -1) > 0) {
                for (std::size_t i = 0; i < 2; ++i) {
                    std::array<char, 4096> some;
                    if (both[i].revents != 0) {
                        const ssize_t n = ::recv(both[i].fd, some.data(), some.size(), 0);
                        if (n <= 0 || ::send(both[1 - i].fd, some.data(),
                                             static_cast<std::size_t>(n), MSG_NOSIGNAL) != n) {
                            return;
                        }
                    }
                }
            }
        },
        geteuid());
    Side near(victim.near_domain);
    Side far(victim.far_domain);
    cr_assert(victim.connect(near, far, ntohs(address.sin_port)) == dat::engine::LinkKind::iwarp);
    cr_assert(victim.talks(near, far, 10));
}

// A local listener that says more than its welcome, while descriptors are let in for that one: they
// would be in a socket that counts as one that has none.
Test(engine_shm_neighbour, a_local_listener_that_gives_more_behind_its_welcome__is_left,
     .timeout = 60) {
    if (!shm::refuses_rights(shm::local_socket())) {
        return; // there no socket counts as that
    }
    OpenDomain domain(sharing());
    FalseListener local_listener(13);
    const std::size_t before = open_descriptors();
    for (const std::size_t count : {0u, 1u, 253u}) {
        shm::Joint joint;
        cr_assert(shm::join_host(domain, local_listener.offer, {}, joint));
        const dat::net::Socket guest = local_listener.let_in();
        cr_assert(pass(guest.fd(), local_listener.right(), local_listener.memory.fd(), 1));
        cr_assert(pass(guest.fd(), bytes("x"), STDERR_FILENO, count));
        cr_assert(shm::welcomed(domain, joint) == shm::Answer::refused, "%zu descriptors", count);
        cr_assert_not(shm::refuses_rights(joint.wake_socket), "it is closed as one that has some");
        shm::leave(domain, joint);
    }
    cr_assert(run_until(domain, [&] { return open_descriptors() == before; }));
}
