// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Fuzz target: messages at the local listener of shared memory, with any descriptors: a real local
// listener and guests that say anything, a real guest and a local listener that says anything, and
// what the messages are, as bytes. As with a kernel that keeps descriptors out, and as one that
// cannot; of this user or another. Input: an octet that says which, one whether there are threads,
// then steps.
//
// What must hold: only the right message, the first of a guest and without descriptors, is
// answered, once for each offer, and a stranger is never; who says then that he has come in
// has the offer, and nobody else; what the guest takes is one descriptor of sealed memory of the
// right size, with the right message; and no descriptor stays behind.
#include "../unit/engine_harness.h"
#include "input.h"
#include "plain.h"

#include "links/shm/joining.h"
#include "links/shm/local_listener.h"
#include "links/shm/local_socket.h"
#include "links/shm/memory.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

using fuzz::Bytes;
using fuzz::Input;
namespace shm = dat::shm;
using dat::net::Socket;

namespace {
bool g_old_kernel = false; // as before Linux 6.16
bool g_stranger = false;   // the other end is another user's
bool g_no_threads = false; // none is to be had, as it is with most inputs: one takes long
} // namespace

// In place of the C library's, and of the sanitizer's.
extern "C" {
int setsockopt(int fd, int level, int name, const void* value, socklen_t size) noexcept {
    constexpr int kPassRights = 83;
    if (g_old_kernel && level == SOL_SOCKET && name == kPassRights) {
        errno = ENOPROTOOPT;
        return -1;
    }
    return static_cast<int>(syscall(SYS_setsockopt, fd, level, name, value, size));
}

int getsockopt(int fd, int level, int name, void* value, socklen_t* size) noexcept {
    const long result = syscall(SYS_getsockopt, fd, level, name, value, size);
    if (g_stranger && result == 0 && level == SOL_SOCKET && name == SO_PEERCRED) {
        static_cast<ucred*>(value)->uid += 1;
    }
    return static_cast<int>(result);
}

int __interceptor_pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
int pthread_create(pthread_t* thread, const pthread_attr_t* how, void* (*run)(void*),
                   void* with) noexcept {
    return g_no_threads ? EAGAIN : __interceptor_pthread_create(thread, how, run, with);
}
}

namespace {

constexpr shm::TcpEnds kEnds{{{1, 2, 3}, 4, 0}, {{5, 6, 7}, 8, 0}};

// --- descriptors ---

int memory(off_t size, int seals) {
    const int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    FUZZ_CHECK(fd >= 0 && ftruncate(fd, size) == 0 && fcntl(fd, F_ADD_SEALS, seals) == 0);
    return fd;
}

int read_only(int fd) {
    std::array<char, 40> path{};
    std::snprintf(path.data(), path.size(), "/proc/self/fd/%d", fd);
    return ::open(path.data(), O_RDONLY | O_CLOEXEC);
}

// What can be passed. The first two are right.
struct Descriptors {
    Descriptors() {
        constexpr auto kSize = static_cast<off_t>(sizeof(shm::Layout));
        int error = 0;
        right = shm::Segment::create(all[0], error);
        FUZZ_CHECK(right);
        all[1] = memory(kSize, F_SEAL_SHRINK);
        all[2] = memory(kSize, F_SEAL_GROW);
        all[3] = memory(kSize - 1, F_SEAL_SHRINK | F_SEAL_GROW);
        all[4] = memory(kSize + 4096, F_SEAL_SHRINK | F_SEAL_GROW);
        all[5] = memory(kSize, F_SEAL_SHRINK | F_SEAL_WRITE);
        all[6] = memory(kSize, F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE);
        all[7] = read_only(all[0]);
        all[8] = ::open("/dev/null", O_RDWR | O_CLOEXEC);
        all[9] = ::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int ends[2];
        FUZZ_CHECK(pipe2(ends, O_CLOEXEC) == 0);
        all[10] = ends[0];
        FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
        all[11] = ends[0];
    }
    static constexpr std::size_t kRight = 2;
    std::array<int, 12> all{};
    shm::Segment right;
};

const Descriptors& descriptors() {
    static const Descriptors all;
    return all;
}

// How many there are of so many numbers, from `first`.
std::size_t open_descriptors(std::size_t first, std::size_t numbers) {
    static std::array<pollfd, 320> all = [] {
        std::array<pollfd, 320> out{};
        for (std::size_t i = 0; i < out.size(); ++i) {
            out[i].fd = static_cast<int>(i);
        }
        return out;
    }();
    const auto some = std::span(all).subspan(first, numbers);
    // Not poll(): a sanitizer would look at each.
    FUZZ_CHECK(syscall(SYS_poll, some.data(), some.size(), 0) >= 0);
    return some.size() - fuzz::count_with(some, POLLNVAL);
}

// Numbers that inputs reach without many in one message, and with.
constexpr std::size_t kFew = 64;
constexpr std::size_t kMany = 256;
bool g_many = false; // this one has passed as many

// --- messages ---

struct Message {
    Bytes bytes;
    std::vector<int> fds;
};

Bytes bytes_of(const auto& message) {
    const auto bytes = std::as_bytes(std::span(&message, 1));
    return {bytes.begin(), bytes.end()};
}

// A right one, mostly, but for what the input says.
Message message(Input& input, const Bytes& likely) {
    Message out;
    const std::uint8_t what = input.octet();
    switch (what % 8) {
    case 0:
        out.bytes = bytes_of(shm::Joined{});
        break;
    case 1:
        out.bytes = bytes_of(shm::Welcome{});
        break;
    case 2:
        out.bytes = input.bytes(input.octet());
        break;
    default:
        out.bytes = likely;
    }
    for (std::uint8_t i = 0; i < what / 8 % 4 && !out.bytes.empty(); ++i) {
        const std::size_t at = input.octet() % out.bytes.size();
        out.bytes[at] = static_cast<std::byte>(input.octet());
    }
    if ((what & 0x80) != 0) {
        out.bytes.resize(input.octet() % (shm::kLongestMessage + 8));
    }
    if (const std::uint8_t passed = input.octet(); passed >= 96) {
        constexpr std::size_t kCounts[] = {1, 1, 1, 1, 1, 1, 2, 3};
        // As many as the kernel takes are many: seldom.
        const std::size_t count = passed == 255 ? 253 : kCounts[passed % std::size(kCounts)];
        g_many |= passed == 255;
        const std::uint8_t first = input.octet();
        for (std::size_t i = 0; i < count; ++i) {
            out.fds.push_back(descriptors().all[(first + i) % descriptors().all.size()]);
        }
    }
    return out;
}

// Whether it was sent: the kernel may refuse the descriptors, and the other end be closed.
bool send(int socket, const Message& message) {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(253 * sizeof(int))> room;
    iovec part{const_cast<std::byte*>(message.bytes.data()), message.bytes.size()};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (const std::size_t size = message.fds.size() * sizeof(int); size > 0) {
        header.msg_control = room.data();
        header.msg_controllen = CMSG_SPACE(size);
        cmsghdr* const rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(size);
        std::memcpy(CMSG_DATA(rights), message.fds.data(), size);
    }
    return ::sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

// Without descriptors, or with one at most.
struct Heard {
    ssize_t size; // as recvmsg()
    Bytes bytes;
    Socket fd;
};

Heard hear(int socket) {
    Heard out{-1, Bytes(256), {}};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> room;
    iovec part{out.bytes.data(), out.bytes.size()};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = room.data();
    header.msg_controllen = room.size();
    do {
        out.size = ::recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        // Told once, where the other end has not read all; what it said is still there.
    } while (out.size < 0 && errno == ECONNRESET);
    out.bytes.resize(out.size > 0 ? static_cast<std::size_t>(out.size) : 0);
    if (out.size >= 0) {
        FUZZ_CHECK((header.msg_flags & MSG_CTRUNC) == 0);
        if (const cmsghdr* const rights = CMSG_FIRSTHDR(&header)) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(rights), sizeof fd);
            out.fd = Socket(fd);
        }
    }
    return out;
}

template <class Kind> bool is_of(const Bytes& bytes) {
    const Bytes right = bytes_of(Kind{});
    constexpr std::size_t kTag = 8; // magic and kind
    return bytes.size() == right.size() &&
           std::equal(right.begin(), right.begin() + kTag, bytes.begin());
}

// --- the domains ---

dat::engine::Domain& domain() {
    const auto options = [] {
        auto o = engine_test::options();
        o.settings.shm = true;
        o.settings.handshake_limit = std::chrono::hours(1);
        return o;
    };
    static engine_test::OpenDomain those_of_now(options());
    static engine_test::OpenDomain old_ones(options());
    return g_old_kernel ? old_ones : those_of_now;
}

shm::LocalListener& local_listener() {
    // It is closed with few descriptors, of which there are enough here, and while many wait to be
    // closed by a thread, which takes as long as others have the processors.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    shm::LocalListener* opened = shm::LocalListener::of(domain());
    while (!opened && std::chrono::steady_clock::now() < deadline) {
        sched_yield();
        opened = shm::LocalListener::of(domain());
    }
    FUZZ_CHECK(opened);
    return *opened;
}

// Messages in their order, one at each turn.
void progress() {
    constexpr int kTurns = 3; // let in, first, second
    for (int i = 0; i < kTurns; ++i) {
        domain().progress();
    }
}

socklen_t address_of(const shm::Offer& offer, sockaddr_un& address) {
    shm::Name name{};
    std::memcpy(name.data(), offer.data(), sizeof name);
    return shm::address_of(name, address);
}

// --- a real local listener ---

struct Host final : shm::Host {
    void invited() override {
        FUZZ_CHECK(offered && !is_invited && !g_stranger);
        is_invited = true;
    }
    void stayed_out() override {
        FUZZ_CHECK(offered && is_invited);
        offered = false;
    }
    void joined(shm::Joint joint) override {
        FUZZ_CHECK(offered && is_invited && joint.channel);
        FUZZ_CHECK(!joint.parameters.initiator);
        offered = false;
        has_joined = true;
    }
    shm::Offer offer{};
    bool offered = false;
    bool is_invited = false;
    bool has_joined = false;
    int fit = 0;       // guests whose first message was the right one
    bool said = false; // one of them has said that it came in
};

struct Guest {
    Socket socket;
    int sent = 0;
    Host* wants = nullptr; // the first message was right for that
    bool welcome = false;
    bool spoilt = false; // said something else after it
};

class AtTheDoor {
  public:
    AtTheDoor() {
        for (Host& host : hosts_) {
            host.offer = local_listener().offer(host, ends_of(host));
            host.offered = true;
        }
    }
    void step(Input& input);
    void finish();

  private:
    shm::TcpEnds ends_of(const Host& host) const {
        shm::TcpEnds ends = kEnds;
        ends.initiator.port = static_cast<std::uint16_t>(&host - hosts_.data());
        return ends;
    }
    Bytes hello(const Host& host) const {
        shm::Hello out;
        std::memcpy(&out.cookie, host.offer.data() + 16, sizeof out.cookie);
        out.ends = ends_of(host);
        const shm::Image image = shm::own_image();
        out.self = {image.address, image.word, 0, 0};
        return bytes_of(out);
    }
    // What it tells of itself may be anything.
    bool is_right(const Host& host, const Bytes& bytes) const {
        const Bytes right = hello(host);
        constexpr std::size_t kChecked = sizeof(shm::Hello) - sizeof(shm::Self);
        return bytes.size() == right.size() &&
               std::equal(right.begin(), right.begin() + kChecked, bytes.begin());
    }
    void say(Guest& guest, Input& input);
    void listen(Guest& guest);
    void check();

    std::array<Host, 2> hosts_;
    std::array<Guest, 4> guests_;
};

void AtTheDoor::say(Guest& guest, Input& input) {
    const std::uint8_t which = input.octet();
    Host& host = hosts_[which % 2];
    const Message said = message(input, guest.sent > 0 ? bytes_of(shm::Joined{}) : hello(host));
    if (!guest.socket || !send(guest.socket.fd(), said)) {
        return;
    }
    const bool first = guest.sent++ == 0;
    if (first && said.fds.empty()) {
        for (Host& each : hosts_) {
            if (is_right(each, said.bytes)) {
                guest.wants = &each;
                each.fit += 1;
            }
        }
    } else if (guest.wants && guest.sent == 2) {
        guest.spoilt = !is_of<shm::Joined>(said.bytes) || !said.fds.empty();
        guest.wants->said |= !guest.spoilt;
    }
}

// A welcome, once, if it has asked for it.
void AtTheDoor::listen(Guest& guest) {
    if (!guest.socket) {
        return;
    }
    for (int i = 0; i < 2; ++i) {
        const Heard heard = hear(guest.socket.fd());
        if (heard.size <= 0) {
            FUZZ_CHECK(!heard.fd);
            return;
        }
        if (guest.welcome && guest.wants->has_joined && heard.size == shm::kRingSize && !heard.fd) {
            continue; // rung for the end of its connection
        }
        FUZZ_CHECK(!g_stranger && guest.wants && !std::exchange(guest.welcome, true));
        FUZZ_CHECK(guest.wants->is_invited && is_of<shm::Welcome>(heard.bytes));
        struct stat status {};
        const int seals = fcntl(heard.fd.fd(), F_GET_SEALS);
        FUZZ_CHECK(seals >= 0 && (seals & F_SEAL_SHRINK) != 0);
        FUZZ_CHECK(fstat(heard.fd.fd(), &status) == 0 &&
                   status.st_size == static_cast<off_t>(sizeof(shm::Layout)));
    }
}

void AtTheDoor::check() {
    for (const Host& host : hosts_) {
        FUZZ_CHECK(!host.is_invited || host.fit > 0);
        FUZZ_CHECK(!host.has_joined || host.said);
    }
}

void AtTheDoor::step(Input& input) {
    const std::uint8_t what = input.octet();
    Guest& guest = guests_[what / 16 % guests_.size()];
    switch (what % 16) {
    case 0:
    case 1:
    case 2:
        if (!guest.socket) {
            sockaddr_un address;
            const socklen_t size = address_of(hosts_[0].offer, address);
            Socket socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
            if (::connect(socket.fd(), reinterpret_cast<sockaddr*>(&address), size) == 0) {
                guest = {};
                guest.socket = std::move(socket);
            }
        }
        if (what % 16 != 0) {
            say(guest, input);
        }
        break;
    case 8:
        guest.socket.close();
        break;
    case 9:
        if (guest.socket) {
            ::shutdown(guest.socket.fd(), what & 64 ? SHUT_WR : SHUT_RDWR);
            guest.spoilt = true;
        }
        break;
    case 10: {
        Host& host = hosts_[what / 16 % 2];
        local_listener().withdraw(host.offer); // once more does no harm
        host.offered = false;
        break;
    }
    case 11:
    case 12:
        listen(guest);
        break;
    default:
        say(guest, input);
    }
    if (input.octet() < 160) {
        progress();
        check();
    }
}

// Who alone had the right message, and is still there, is let in.
void AtTheDoor::finish() {
    progress();
    for (Guest& guest : guests_) {
        Host* const host = guest.wants;
        if (!g_stranger && guest.socket && host && host->fit == 1 && host->offered &&
            !guest.spoilt) {
            FUZZ_CHECK(engine_test::run_until(domain(), [&] { return host->is_invited; }));
            if (guest.sent == 1) {
                FUZZ_CHECK(send(guest.socket.fd(), {bytes_of(shm::Joined{}), {}}));
                host->said = true;
            }
            FUZZ_CHECK(engine_test::run_until(domain(), [&] { return !host->offered; }));
            FUZZ_CHECK(host->has_joined);
            listen(guest);
            FUZZ_CHECK(guest.welcome);
        }
        listen(guest);
    }
    check();
    for (Guest& guest : guests_) {
        guest.socket.close();
    }
    for (Host& host : hosts_) {
        local_listener().withdraw(host.offer);
        host.offered = false;
    }
    progress();
}

// --- a real guest ---

struct ListeningDoor {
    ListeningDoor() {
        const std::uint64_t name[] = {static_cast<std::uint64_t>(getpid()), 0x66757a7a};
        std::memcpy(offer.data(), name, sizeof name);
        sockaddr_un address;
        const socklen_t size = address_of(offer, address);
        socket = Socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        FUZZ_CHECK(::bind(socket.fd(), reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                   ::listen(socket.fd(), 16) == 0);
    }
    Socket accept() const {
        return Socket(::accept4(socket.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    }
    shm::Offer offer{};
    Socket socket;
};

const ListeningDoor& listening() {
    static const ListeningDoor one;
    return one;
}

// Whether this kernel can; not while it plays an old one.
bool keeps_rights_out() {
    static const bool can = shm::refuses_rights(shm::local_socket());
    return can;
}

// It asks, and hears what the input says.
void attack_guest(Input& input) {
    shm::Offer offer = listening().offer;
    const std::uint64_t cookie = input.octet();
    std::memcpy(offer.data() + 16, &cookie, sizeof cookie);
    shm::Joint joint;
    const bool asked = shm::join_host(domain(), offer, kEnds, joint);
    FUZZ_CHECK(asked == !g_stranger && static_cast<bool>(joint.wake_socket) == asked);
    Socket peer = listening().accept();
    FUZZ_CHECK(peer);
    Heard hello = hear(peer.fd());
    if (!asked) {
        FUZZ_CHECK(hello.bytes.empty() && !hello.fd);
        return;
    }
    FUZZ_CHECK(is_of<shm::Hello>(hello.bytes) && !hello.fd);
    FUZZ_CHECK(std::memcmp(hello.bytes.data() + 8, &cookie, sizeof cookie) == 0);
    shm::Welcome likely;
    const shm::Image image = shm::own_image();
    likely.self = {image.address, image.word, 0, 0};
    shm::Answer right = shm::Answer::none_yet;
    std::size_t sent = 0;
    for (int i = 0; i < 4 && !input.empty() && peer; ++i) {
        const std::uint8_t what = input.octet();
        if (what % 8 == 0) {
            peer.close();
            // The memory may be right, but nobody is there to be told.
            right = shm::Answer::refused;
            break;
        }
        const Message said = message(input, bytes_of(likely));
        const auto& all = descriptors().all;
        const auto end_of_right = all.begin() + Descriptors::kRight;
        if (send(peer.fd(), said) && sent++ == 0) {
            const bool given = said.fds.size() == 1 &&
                               std::find(all.begin(), end_of_right, said.fds[0]) != end_of_right;
            right = given && is_of<shm::Welcome>(said.bytes) ? shm::Answer::welcome
                                                             : shm::Answer::refused;
        }
        if (what % 8 == 1) {
            break;
        }
    }
    // Where the kernel keeps descriptors out, the guest had let them in for the welcome alone.
    if (sent > 1 && !g_old_kernel && keeps_rights_out()) {
        right = shm::Answer::refused;
    }
    FUZZ_CHECK(shm::welcomed(domain(), joint) == right);
    if (right == shm::Answer::welcome) {
        FUZZ_CHECK(joint.channel && !joint.wake_socket);
        const Heard joined = hear(peer.fd());
        FUZZ_CHECK(is_of<shm::Joined>(joined.bytes) && !joined.fd);
    }
    shm::leave(domain(), joint);
    FUZZ_CHECK(!joint.wake_socket);
}

// --- the messages alone ---

template <class Kind> void parse_as(const Bytes& bytes) {
    const auto parsed = shm::parse<Kind>(bytes);
    FUZZ_CHECK(parsed.has_value() == is_of<Kind>(bytes));
    FUZZ_CHECK(!parsed || bytes_of(*parsed) == bytes);
}

void parse_all(Input& input) {
    shm::Hello hello;
    hello.cookie = 0x0123456789abcdef;
    const Bytes bytes = message(input, bytes_of(hello)).bytes;
    parse_as<shm::Hello>(bytes);
    parse_as<shm::Welcome>(bytes);
    parse_as<shm::Joined>(bytes);
}

void run(Input& input) {
    const std::uint8_t how = input.octet();
    g_old_kernel = (how & 4) != 0;
    g_stranger = (how & 0x18) == 0x18;
    g_no_threads = input.octet() != 0xa5 || input.size() % 16 != 0;
    switch (how % 4) {
    case 0:
    case 1: {
        AtTheDoor world;
        for (int i = 0; i < 32 && !input.empty(); ++i) {
            world.step(input);
        }
        world.finish();
        break;
    }
    case 2:
        attack_guest(input);
        break;
    default:
        parse_all(input);
    }
}

// Makes all that stays; how many descriptors there are that no input should touch.
std::size_t prepare() {
    for (const bool old : {true, false}) {
        g_old_kernel = old;
        local_listener();
        domain().progress();
    }
    listening();
    descriptors();
    shm::own_image();
    return open_descriptors(kFew, kMany);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const std::size_t above = prepare();
    // libFuzzer opens and closes some of its own between inputs.
    const std::size_t before = open_descriptors(0, kFew);
    g_many = false;
    Input input(data, size);
    run(input);
    g_no_threads = false;
    const auto all_closed = [&] {
        return open_descriptors(0, kFew) == before &&
               (!g_many || open_descriptors(kFew, kMany) == above);
    };
    // What a thread closes is closed soon.
    FUZZ_CHECK(engine_test::run_until(domain(), all_closed, [] { sched_yield(); }));
    return 0;
}
