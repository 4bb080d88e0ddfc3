// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What endpoints of one host share, between processes: who may copy from whose memory,
// and what is left of it.
#include "child.h"
#include "suite.h"

#include "links/shm/segment.h"

#include <linux/capability.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sched.h>
#include <sstream>

using namespace dat::test;

namespace {

// The memory that this process shares, one mapping a connection.
std::vector<const dat::shm::Layout*> shared_memory() {
    std::vector<const dat::shm::Layout*> all;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
        if (line.find("/memfd:dat") != std::string::npos)
            all.push_back(reinterpret_cast<const dat::shm::Layout*>(
                std::strtoull(line.c_str(), nullptr, 16)));
    return all;
}

void require_root() {
    if (geteuid() != 0)
        cr_skip_test("needs root");
}

// Messages of every kind of size in both directions, and RDMA.
void exchange(ToChild& peer) {
    for (const std::size_t size : {std::size_t{1}, std::size_t{96}, std::size_t{97},
                                   std::size_t{16385}, std::size_t{1} << 20}) {
        const std::string some = " 5 " + std::to_string(size);
        peer.child.expect("recv" + some, "ok");
        const Bytes out = pattern(size);
        std::vector<Op*> sends;
        for (int i = 0; i < 5; ++i)
            sends.push_back(&peer.endpoint.send(out.data(), out.size()));
        wait_ops(sends);
        peer.child.expect("finish", "results 5 0 0");
        std::vector<Bytes> in(5, Bytes(size));
        const std::vector<Op*> receives = post_receives(peer.endpoint, in);
        peer.child.expect("send" + some, "ok");
        wait_ops(receives);
        peer.child.expect("finish", "results 5 0 0");
        for (const Bytes& buffer : in)
            cr_assert(buffer == out, "size %zu", size);
    }
    constexpr std::size_t kSize = 300'000;
    const Remote remote = peer.child.region(kSize);
    const Bytes out = pattern(kSize);
    Bytes in(kSize);
    wait_op(peer.endpoint.write_confirmed(out.data(), kSize, remote));
    wait_op(peer.endpoint.read(in.data(), kSize, remote));
    cr_assert(in == out);
}

// With such a peer memory is shared, and each side copies from the other or not.
void with_peer(const Transport& transport, const char* as, bool we_pull, bool it_pulls) {
    require_root();
    setenv("DAT_PEER_AS", as, 1);
    ToChild peer(transport);
    peer.connect();
    const auto memory = shared_memory();
    cr_assert_eq(memory.size(), 1u);
    exchange(peer);
    // This side began the connection. Nobody pulls who may not.
    cr_assert_eq(memory[0]->control[0].pulls.load(), we_pull ? 1u : 0u);
    cr_assert_eq(memory[0]->control[1].pulls.load(), it_pulls ? 1u : 0u);
}

void give_up_ptrace() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2]{};
    cr_assert_eq(syscall(SYS_capget, &header, data), 0);
    data[0].effective &= ~(1u << CAP_SYS_PTRACE);
    data[0].permitted &= ~(1u << CAP_SYS_PTRACE);
    cr_assert_eq(syscall(SYS_capset, &header, data), 0);
}

// A network namespace of this process alone, with loopback: what is in it is its own.
void own_network() {
    require_root();
    cr_assert_eq(unshare(CLONE_NEWNET), 0);
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);
    ifreq request{};
    std::strcpy(request.ifr_name, "lo");
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    cr_assert_eq(ioctl(fd, SIOCSIFFLAGS, &request), 0);
    close(fd);
}

// Progress threads of this process run only where its main thread waits: on the same
// processor, which is otherwise not free for them.
void progress_threads_come_last() {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    const sched_param none{};
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        const pid_t id = std::stoi(task.path().filename());
        std::string name;
        std::getline(std::ifstream(task.path() / "comm"), name);
        if (name == "dat-progress")
            cr_assert_eq(sched_setscheduler(id, SCHED_IDLE, &none), 0);
        if (name == "dat-progress" || id == getpid())
            cr_assert_eq(sched_setaffinity(id, sizeof one, &one), 0);
    }
}

void keep_processor_for(std::chrono::microseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
    }
}

// Those at which memory is shared; where dat_top(1) looks, each domain has one.
int local_sockets() {
    std::ifstream file("/proc/self/net/unix");
    int count = 0;
    for (std::string line; std::getline(file, line);) {
        const bool shows = line.find("@dat-stats-") != std::string::npos;
        count += !shows && line.find("@dat-") != std::string::npos ? 1 : 0;
    }
    return count;
}

} // namespace

SHM_TEST(shm_process, of_the_same_user__both_copy_from_each_other) {
    with_peer(transport, "", true, true);
}

// FI_DAT_SHM=0.
WIRE_TEST(shm_off, two_processes__share_nothing) {
    only_dat();
    ToChild peer(transport);
    peer.connect();
    exchange(peer);
    cr_assert(shared_memory().empty());
}

// Its user may not read the memory of this one. This one may read everybody's, and does
// not: a process number that was its peer's may be another's by then.
SHM_TEST(shm_process, of_another_user__gets_large_messages_in_pieces_if_it_is_let_in) {
    setenv("FI_DAT_SHM_PEERS", "any", 1);
    with_peer(transport, "nobody", false, false);
}

// As long as nothing else is said, it stays on TCP, whoever of both began.
SHM_TEST(shm_process, of_another_user__shares_nothing) {
    require_root();
    only_dat();
    setenv("DAT_PEER_AS", "nobody", 1);
    {
        ToChild peer(transport);
        peer.connect();
        cr_assert(shared_memory().empty());
        exchange(peer);
    }
    FromChild peer(transport);
    DAT_MUST(peer.endpoint->accept());
    wait_event(peer.side, FI_CONNECTED);
    cr_assert(shared_memory().empty());
}

// This process is not to be found from there. The other is, and could have this one wait
// for its memory, though it could not stop it otherwise.
SHM_TEST(shm_process, of_another_pid_namespace__gets_large_messages_in_pieces) {
    with_peer(transport, "pid_namespace", false, false);
}

// ptrace(2) rules: it lets nobody read its memory, who may do nothing special.
SHM_TEST(shm_process, that_nobody_may_trace__sends_large_messages_in_pieces) {
    give_up_ptrace();
    with_peer(transport, "undumpable", false, true);
}

// Nor are there files.
SHM_TEST(shm_killed, peer__leaves_no_name_behind) {
    own_network();
    {
        ToChild peer(transport);
        peer.connect();
        cr_assert_gt(local_sockets(), 0);
        peer.child.kill();
        require_one_end(peer.side, peer.endpoint);
        cr_assert_eq(local_sockets(), 0);
    }
    {
        FromChild peer(transport);
        DAT_MUST(peer.endpoint->accept());
        wait_event(peer.side, FI_CONNECTED);
        peer.child.kill();
        require_one_end(peer.side, *peer.endpoint);
    }
    cr_assert_eq(local_sockets(), 0);
    cr_assert(shared_memory().empty());
}

// Without connections nothing stays mapped.
SHM_TEST(shm_closed, connection__gives_its_memory_back) {
    auto pair = Pair::connected(transport);
    cr_assert_eq(shared_memory().size(), 2u); // both ends are here
    DAT_MUST(pair->active.close());
    wait_shutdown(pair->passive());
    cr_assert(wait_until([] { return shared_memory().empty(); }));
}

// FI_PROGRESS_AUTO: what peers write arrives also where a program reads its queue once, just
// when the progress thread is to be woken, and looks at nothing but memory from then on.
SHM_TEST(shm_progress, after_a_single_read_of_the_queue__goes_on) {
    SideOptions options;
    options.progress = FI_PROGRESS_AUTO;
    Side side(transport, options);
    Child child(transport);
    Endpoint endpoint(side);
    DAT_MUST(endpoint.connect(child.listen()));
    child.expect("event", "connreq 0");
    child.expect("accept 0", "ok");
    wait_event(side, FI_CONNECTED);
    child.expect("event", "connected 0");
    Region region(side, 256, FI_REMOTE_WRITE);
    const auto write = [&](std::int64_t offset) {
        const Remote to = region.at(offset);
        return "write 8 " + std::to_string(to.address) + ' ' + std::to_string(to.key);
    };
    volatile std::uint8_t* second = region.data() + 8;
    progress_threads_come_last();
    side.asleep = true; // from here on nothing else reads its queue
    for (int round = 0; round < 10; ++round) {
        *second = 0;
        usleep(20'000); // the thread takes over, if it is to
        child.tell(write(0));
        keep_processor_for(std::chrono::microseconds(500 + 500 * round));
        fi_cq_data_entry none;
        cr_assert_eq(fi_cq_read(side.cq(), &none, 1), -FI_EAGAIN);
        child.tell(write(8));
        for (int waited = 0; *second == 0; ++waited) {
            cr_assert_lt(waited, 60'000, "round %d: nothing arrives", round);
            usleep(1000);
        }
        cr_assert(child.answer() == "ok");
        cr_assert(child.answer() == "ok");
        child.expect("finish", "results 2 0 0");
    }
    side.asleep = false;
}

// Who waits for no time only looks, often again and again: its peers need not ring for it.
SHM_TEST(shm_wait, of_no_time__puts_no_connection_to_sleep) {
    SideOptions options;
    options.progress = FI_PROGRESS_MANUAL;
    options.cq_wait = FI_WAIT_UNSPEC;
    auto pair = Pair::connected(transport, options, options);
    Fid<fid_cntr> counter;
    DAT_MUST(fi_cntr_open(pair->near.domain(), nullptr, counter.out(), nullptr));
    const auto asleep = [layout = shared_memory().at(0)] {
        return std::ranges::count_if(
            layout->control, [](const dat::shm::Control& end) { return end.asleep.load() != 0; });
    };
    char in = 0;
    Op& receive = pair->passive().recv(&in, 1);
    wait_op(pair->active.send("x", 1));
    wait_op(receive);
    cr_assert_eq(asleep(), 0);
    fi_cq_data_entry none{};
    cr_assert_eq(fi_cq_sread(pair->near.cq(), &none, 1, nullptr, 0), -FI_EAGAIN);
    cr_assert_eq(asleep(), 0);
    cr_assert_eq(fi_cntr_wait(counter.get(), 1, 0), -FI_ETIMEDOUT);
    cr_assert_eq(asleep(), 0);
    cr_assert_eq(fi_cntr_wait(counter.get(), 1, 1), -FI_ETIMEDOUT);
    cr_assert_eq(asleep(), 1, "for a time it sleeps");
}
