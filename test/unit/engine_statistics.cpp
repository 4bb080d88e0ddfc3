// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What a domain counts, and the page that it shows to those who look: what is in it, that nothing
// of it is ever torn, also where the writer is killed, and who is let in. Needs root to become
// another user.
#include "engine_shm.h"

#include "engine/statistics_page.h"
#include "links/iwarp/connect.h"
#include "links/shm/viewers.h"
#include "util/top/page_socket.h"

#include <array>
#include <atomic>
#include <csignal>
#include <dirent.h>
#include <fcntl.h>
#include <fstream>
#include <memory>
#include <poll.h>
#include <random>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <sys/wait.h>

using namespace engine_test;
namespace page = dat::engine::page;

namespace {

// --- the page alone ---

// A page that a child writes.
struct WrittenPage {
    WrittenPage() {
        void* const mapped = mmap(nullptr, sizeof(page::Page), PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        cr_assert_neq(mapped, MAP_FAILED);
        page = new (mapped) page::Page;
    }
    ~WrittenPage() { munmap(page, sizeof *page); }
    page::Page* page;
};

constexpr std::size_t kRowsWritten = 16;

// Every word of it is `number`, but how many rows there are.
template <class T> T all_of(std::uint64_t number) {
    std::array<std::uint64_t, sizeof(T) / 8> words{};
    words.fill(number);
    T value;
    std::memcpy(&value, words.data(), sizeof value);
    return value;
}

template <class T> bool is_all_of(const T& value, std::uint64_t number) {
    const T wanted = all_of<T>(number);
    return std::memcmp(&value, &wanted, sizeof value) == 0;
}

void fill_sheet(page::Sheet& sheet, std::uint64_t number) {
    page::Totals totals = all_of<page::Totals>(number);
    totals.rows = kRowsWritten;
    page::copy_in(sheet.totals, totals);
    for (std::size_t i = 0; i < kRowsWritten; ++i) {
        page::copy_in(sheet.rows[i], all_of<page::Row>(number));
    }
}

// Of one number throughout; which.
std::uint64_t whole_sheet(const page::Page& page) {
    const auto sheet = std::make_unique<page::Sheet>();
    cr_assert(page::read_sheet(page, *sheet), "no sheet could be read");
    cr_assert_eq(sheet->totals.rows, kRowsWritten);
    const std::uint64_t number = sheet->totals.written_ns;
    page::Totals totals = all_of<page::Totals>(number);
    totals.rows = kRowsWritten;
    cr_assert_eq(std::memcmp(&totals, &sheet->totals, sizeof totals), 0, "torn totals");
    for (std::size_t i = 0; i < kRowsWritten; ++i) {
        cr_assert(is_all_of(sheet->rows[i], number), "row %zu is torn", i);
    }
    return number;
}

// The numbers of ends grow, and none is torn. Some are left out where the writer came round.
void whole_ends(const page::Page& page) {
    std::uint64_t last = page::kNone;
    page::read_ends(page, [&](const page::End& end) {
        cr_assert(is_all_of(end, end.number), "a torn end");
        cr_assert(last == page::kNone || end.number > last, "%llu behind %llu",
                  static_cast<unsigned long long>(end.number),
                  static_cast<unsigned long long>(last));
        last = end.number;
    });
}

} // namespace

// Killed between any two of its words: a reader has what was there before.
Test(statistics_page, a_sheet_that_was_never_finished_is_not_seen) {
    const WrittenPage written;
    page::Sheet& next = written.page->sheet[0];
    page::write_sheet(*written.page, [](page::Sheet& sheet) { fill_sheet(sheet, 1); });
    cr_assert_eq(&next, &written.page->sheet[(written.page->sheets.load() + 1) & 1]);
    const auto whole = std::make_unique<page::Sheet>();
    fill_sheet(*whole, 2);
    constexpr std::size_t kSize = sizeof(page::Totals) + kRowsWritten * sizeof(page::Row);
    for (std::size_t words = 0; words <= kSize / 8; words += 7) {
        std::memcpy(&next, whole.get(), words * 8);
        cr_assert_eq(whole_sheet(*written.page), 1);
    }
    // But who writes where is read is noticed: what this test looks for, it finds.
    page::Sheet& current = written.page->sheet[1];
    std::memcpy(&current, whole.get(), sizeof(page::Totals) + 8);
    const auto torn = std::make_unique<page::Sheet>();
    cr_assert(page::read_sheet(*written.page, *torn));
    cr_assert(!is_all_of(torn->rows[0], torn->totals.written_ns));
}

Test(statistics_page, nothing_is_torn_while_it_is_written_and_when_the_writer_is_killed) {
    const std::uint64_t seed = std::random_device()();
    std::mt19937_64 dice(seed);
    constexpr int kRounds = 100;
    for (int round = 0; round < kRounds; ++round) {
        const WrittenPage written;
        const pid_t writer = fork();
        cr_assert_geq(writer, 0);
        if (writer == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL); // where the test fails
            for (std::uint64_t i = 0;; ++i) {
                page::write_sheet(*written.page, [&](page::Sheet& sheet) { fill_sheet(sheet, i); });
                page::write_end(*written.page, all_of<page::End>(i));
            }
        }
        const std::uint64_t enough = 1 + dice() % 300;
        std::uint64_t newest = 0;
        while (written.page->sheets.load(std::memory_order_acquire) < enough) {
        }
        for (int i = 0; i < 20; ++i) {
            const std::uint64_t number = whole_sheet(*written.page);
            cr_assert_geq(number, newest, "an older sheet, seed %llu",
                          static_cast<unsigned long long>(seed));
            newest = number;
            whole_ends(*written.page);
        }
        kill(writer, SIGKILL);
        waitpid(writer, nullptr, 0);
        cr_assert_geq(whole_sheet(*written.page), newest);
        whole_ends(*written.page);
        // What is there is the last that was finished.
        const std::uint64_t sheets = written.page->sheets.load();
        cr_assert_eq(whole_sheet(*written.page), sheets - 1);
    }
}

Test(statistics_page, a_reader_takes_no_more_rows_than_there_are) {
    const WrittenPage written;
    page::write_sheet(*written.page, [](page::Sheet& sheet) {
        page::Totals totals{};
        totals.rows = page::kNone;
        page::copy_in(sheet.totals, totals);
    });
    const auto sheet = std::make_unique<page::Sheet>();
    cr_assert(page::read_sheet(*written.page, *sheet));
    cr_assert_eq(sheet->totals.rows, page::kRows);
}

// --- a domain that is looked at ---

namespace {

dat::engine::Domain::Options shown(bool shm = false) {
    auto o = options();
    o.settings.shm = shm;
    return o;
}

int descriptors() {
    int count = 0;
    DIR* const folder = opendir("/proc/self/fd");
    while (readdir(folder)) {
        ++count;
    }
    closedir(folder);
    return count;
}

// The name of the only domain of this process that can be looked at; empty: there is none.
std::string shown_name() {
    for (int fd = 0; fd < 256; ++fd) {
        sockaddr_un address{};
        socklen_t size = sizeof address;
        if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
            address.sun_family == AF_UNIX && size > offsetof(sockaddr_un, sun_path) + 1) {
            const std::string name(address.sun_path + 1,
                                   size - offsetof(sockaddr_un, sun_path) - 1);
            if (name.starts_with(page::kSocketPrefix)) {
                return name;
            }
        }
    }
    return {};
}

using dat::top::Descriptor;

// What is given to who connects. None: the end came instead.
Descriptor given(const Descriptor& socket) {
    return std::move(dat::top::receive_page(socket).memory);
}

bool is_readable(const Descriptor& socket) {
    pollfd fd{socket.get(), POLLIN, 0};
    return poll(&fd, 1, 0) == 1;
}

// Two domains of this process, of which the near one can be looked at.
struct Scene {
    explicit Scene(bool shm = false) : near_domain(shown(shm)), far_domain(shown(shm)) { show(); }
    void show() {
        const dat::engine::BiasedLockOwner inside(near_domain.biased_lock());
        shm::Viewers::open(near_domain, "127.0.0.1", "test");
    }
    template <class Done> bool run(Done done) {
        return run_until(near_domain, done, [&] {
            requests.listener.progress();
            const dat::engine::BiasedLockOwner inside(far_domain.biased_lock());
            far_domain.progress();
        });
    }
    void connect(Side& near, Side& far) {
        cr_assert_eq(dat::iwarp::connect(near.endpoint, requests.listener.name(), nullptr,
                                         bytes("please"), {}),
                     0);
        cr_assert(run([&] { return requests.arrived != nullptr; }));
        cr_assert_eq(dat::iwarp::accept(far.endpoint, *requests.arrived, bytes("welcome")), 0);
        cr_assert(run([&] { return near.connected() && far.connected(); }));
        requests.arrived.reset();
    }
    // Looks from now on.
    void look() {
        viewer = dat::top::connect_to_domain(shown_name());
        cr_assert(viewer ? true : false);
        cr_assert(run([&] { return is_readable(viewer); }));
        const Descriptor memory = given(viewer);
        cr_assert(memory ? true : false);
        // Nobody else can write there, or make it shorter.
        cr_assert_eq(
            mmap(nullptr, sizeof(page::Page), PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0),
            MAP_FAILED);
        cr_assert_neq(ftruncate(memory.get(), 0), 0);
        void* const mapped =
            mmap(nullptr, sizeof(page::Page), PROT_READ, MAP_SHARED, memory.get(), 0);
        cr_assert_neq(mapped, MAP_FAILED);
        page = static_cast<const page::Page*>(mapped);
        cr_assert_eq(page->magic, page::kMagic);
    }
    // A sheet that is written after now.
    const page::Sheet& next_sheet() {
        const std::uint64_t before = page->sheets.load();
        cr_assert(run([&] { return page->sheets.load() > before; }));
        cr_assert(page::read_sheet(*page, *sheet));
        return *sheet;
    }
    std::vector<page::End> ends() const {
        std::vector<page::End> all;
        page::read_ends(*page, [&](const page::End& end) { all.push_back(end); });
        return all;
    }

    Requests requests;
    OpenDomain near_domain;
    OpenDomain far_domain;
    Descriptor viewer;
    const page::Page* page = nullptr;
    std::unique_ptr<page::Sheet> sheet = std::make_unique<page::Sheet>();
};

void one_way(Scene& scene, Side& from, Side& to, std::size_t size) {
    const Bytes out = numbered(size);
    Bytes in(size);
    to.receive(in);
    from.send<dat::engine::Link>(out);
    cr_assert(scene.run([&] { return to.receives.size() == 1 && from.requests.size() == 1; }));
    to.receives.take();
    from.requests.take();
}

void looks_at_a_connection(bool shm) {
    Scene scene(shm);
    Side near{scene.near_domain};
    Side far{scene.far_domain};
    scene.connect(near, far);
    one_way(scene, near, far, 100);
    one_way(scene, near, far, 100000);
    one_way(scene, far, near, 7);
    Bytes later(8);
    near.receive(later);
    scene.look();
    const page::Sheet& sheet = scene.next_sheet();
    cr_assert_eq(sheet.totals.endpoints, 1);
    cr_assert_eq(sheet.totals.connected, 1);
    cr_assert_eq(sheet.totals.established, 1);
    cr_assert_eq(sheet.totals.requests, 2);
    cr_assert_eq(sheet.totals.request_bytes, 100100);
    cr_assert_eq(sheet.totals.receives, 1);
    cr_assert_eq(sheet.totals.receive_bytes, 7);
    cr_assert_eq(sheet.totals.receives_outstanding, 1);
    cr_assert_eq(sheet.totals.rows, 1);
    const page::Row& row = sheet.rows[0];
    cr_assert_eq(row.requests, 2);
    cr_assert_eq(row.request_bytes, 100100);
    cr_assert_eq(row.receives, 1);
    cr_assert_eq(row.receive_bytes, 7);
    cr_assert_eq(row.receives_outstanding, 1);
    cr_assert_gt(row.established_ns, 0);
    cr_assert_str_eq(row.state.data(), "CONNECTED");
    cr_assert_str_eq(row.link.data(), shm ? "shm" : "tcp");
    cr_assert_neq(row.why[0], '\0');
    cr_assert_eq(row.retransmissions == page::kNone, shm);
    cr_assert(scene.ends().empty());

    far.endpoint.disconnect(true);
    cr_assert(scene.run([&] { return near.ended() && far.ended(); }));
    const auto ends = scene.ends();
    cr_assert_eq(ends.size(), 1);
    const page::End& end = ends[0];
    cr_assert_eq(end.reason, static_cast<std::uint32_t>(dat::core::Reason::peer_closed));
    cr_assert_str_eq(end.by.data(), "wire");
    cr_assert_str_eq(end.stimulus.data(), "peer_disconnected");
    cr_assert_str_eq(end.event.data(), "DISCONNECTED");
    cr_assert_str_eq(end.state.data(), "CONNECTED");
    cr_assert_str_eq(end.clause.data(), "EP-54 EP-55 EP-42 EP-52 U-2");
    cr_assert_str_eq(end.link.data(), shm ? "shm" : "tcp");
    cr_assert_eq(end.requests, 2);
    cr_assert_eq(end.receives, 1, "the receive that was flushed was not carried out");
    cr_assert_neq(end.lived_ns, page::kNone);
    const page::Totals& totals = scene.next_sheet().totals;
    cr_assert_eq(totals.connected, 0);
    cr_assert_eq(totals.ends[static_cast<std::size_t>(dat::core::Reason::peer_closed)], 1);
}

} // namespace

Test(statistics, a_connection_and_its_end_are_shown_over_tcp) { looks_at_a_connection(false); }
Test(statistics, a_connection_and_its_end_are_shown_over_memory) { looks_at_a_connection(true); }

Test(statistics, a_message_that_waits_for_a_receive_is_counted) {
    for (const bool shm : {false, true}) {
        Scene scene(shm);
        Side near{scene.near_domain};
        Side far{scene.far_domain};
        scene.connect(near, far);
        scene.look();
        far.send<dat::engine::Link>(bytes("early"), 0, dat::engine::Level::taken);
        cr_assert(scene.run([&] { return near.endpoint.starved(); }));
        const page::Sheet& sheet = scene.next_sheet();
        cr_assert_eq(sheet.rows[0].waits_for_receive, 1);
        cr_assert_eq(sheet.rows[0].not_ready, 1);
        Bytes in(5);
        near.receive(in);
        cr_assert(scene.run([&] { return near.receives.size() == 1; }));
        cr_assert_eq(scene.next_sheet().rows[0].waits_for_receive, 0);
        cr_assert_eq(scene.next_sheet().totals.not_ready, 1);
        scene.viewer.reset();
    }
}

Test(statistics, what_closed_endpoints_have_carried_stays_in_the_totals) {
    Scene scene;
    {
        Side near{scene.near_domain};
        Side far{scene.far_domain};
        scene.connect(near, far);
        one_way(scene, near, far, 10);
        far.endpoint.disconnect(false);
        cr_assert(scene.run([&] { return near.ended(); }));
    }
    scene.look();
    const page::Sheet& sheet = scene.next_sheet();
    cr_assert_eq(sheet.totals.endpoints, 0);
    cr_assert_eq(sheet.totals.rows, 0);
    cr_assert_eq(sheet.totals.established, 1);
    cr_assert_eq(sheet.totals.requests, 1);
    cr_assert_eq(sheet.totals.request_bytes, 10);
    cr_assert_eq(scene.ends().size(), 1, "an end before anybody looked");
}

// A connection that the program closes with its endpoint; an attempt that nobody answers.
Test(statistics, other_ends_are_told_apart) {
    Scene scene;
    scene.look();
    {
        Side near{scene.near_domain};
        Side far{scene.far_domain};
        scene.connect(near, far);
        near.endpoint.free();
    }
    Side near{scene.near_domain};
    const dat::net::SocketAddress nobody = [] {
        const Requests closed; // its port is free again
        return closed.listener.name();
    }();
    cr_assert_eq(dat::iwarp::connect(near.endpoint, nobody, nullptr, {}, {}), 0);
    cr_assert(scene.run([&] { return near.ended(); }));
    const auto ends = scene.ends();
    cr_assert_eq(ends.size(), 2);
    cr_assert_str_eq(ends[0].by.data(), "api");
    cr_assert_str_eq(ends[0].stimulus.data(), "free");
    cr_assert_eq(ends[0].reason, static_cast<std::uint32_t>(dat::core::Reason::local));
    cr_assert_eq(ends[1].reason, static_cast<std::uint32_t>(dat::core::Reason::refused));
    cr_assert_eq(ends[1].lived_ns, page::kNone);
    cr_assert_str_eq(ends[1].link.data(), "none");
    cr_assert_eq(ends[1].endpoint, ends[0].endpoint + 1);
}

Test(statistics, the_last_64_ends_are_kept) {
    Scene scene;
    Side near{scene.near_domain};
    const dat::net::SocketAddress nobody = [] {
        const Requests closed;
        return closed.listener.name();
    }();
    for (int i = 0; i < 70; ++i) {
        if (i == 68) {
            scene.look();
            cr_assert_eq(scene.ends().size(), page::kEnds);
        }
        cr_assert_eq(dat::iwarp::connect(near.endpoint, nobody, nullptr, {}, {}), 0);
        cr_assert(scene.run([&] { return near.ended(); }));
        cr_assert(near.endpoint.reset());
    }
    const auto ends = scene.ends();
    cr_assert_eq(ends.size(), page::kEnds);
    cr_assert_eq(ends.front().number, 6);
    cr_assert_eq(ends.back().number, 69);
}

Test(statistics, who_does_not_look_costs_one_descriptor) {
    OpenDomain hidden{shown()};
    const int before = descriptors();
    OpenDomain other{shown()};
    const int each = descriptors() - before;
    Scene scene; // two domains, and a listener
    const int with_one = descriptors();
    scene.show(); // it is open already
    cr_assert_eq(descriptors(), with_one);
    scene.look();
    cr_assert_gt(descriptors(), with_one);
    scene.viewer.reset();
    cr_assert(scene.run([&] { return descriptors() == with_one; }));
    cr_assert_gt(each, 0);
    // And it can be looked at again.
    scene.look();
    scene.next_sheet();
}

Test(statistics, a_domain_of_which_nothing_is_to_be_seen_has_no_socket) {
    auto o = shown();
    o.settings.stats = dat::engine::Stats::off;
    OpenDomain domain(o);
    const int before = descriptors();
    const dat::engine::BiasedLockOwner inside(domain.biased_lock());
    shm::Viewers::open(domain, "x", "y");
    cr_assert_eq(descriptors(), before);
    cr_assert(shown_name().empty());
}

// What a viewer says is not read, and changes nothing; nor do more of them than there is room for.
Test(statistics, viewers_that_misbehave_change_nothing) {
    Scene scene;
    scene.look();
    for (int i = 0; i < 3; ++i) {
        cr_assert_eq(send(scene.viewer.get(), "word", 4, MSG_NOSIGNAL), 4);
    }
    scene.next_sheet();
    scene.next_sheet();
    std::vector<Descriptor> crowd;
    for (int i = 0; i < 40; ++i) {
        if (Descriptor one = dat::top::connect_to_domain(shown_name())) {
            crowd.push_back(std::move(one));
        }
        scene.next_sheet();
    }
    int let_in = 0;
    for (const auto& each : crowd) {
        cr_assert(scene.run([&] { return is_readable(each); }));
        let_in += given(each) ? 1 : 0;
    }
    cr_assert_eq(let_in, 15);
    crowd.clear();
    scene.next_sheet();
    scene.next_sheet();
    Descriptor again = dat::top::connect_to_domain(shown_name());
    cr_assert(scene.run([&] { return is_readable(again); }));
    cr_assert(given(again) ? true : false);
}

Test(statistics, another_user_is_given_nothing) {
    constexpr uid_t kNobody = 65534;
    if (geteuid() != 0) {
        cr_skip_test("needs root, to become another user");
    }
    Scene scene;
    const std::string name = shown_name();
    int pipes[2];
    cr_assert_eq(pipe2(pipes, O_NONBLOCK), 0);
    const pid_t stranger = fork();
    if (stranger == 0) {
        if (setresgid(kNobody, kNobody, kNobody) != 0 ||
            setresuid(kNobody, kNobody, kNobody) != 0) {
            _exit(2);
        }
        char said = 'c';
        for (int i = 0; i < 200 && said == 'c'; ++i) { // more than are taken at once
            const Descriptor socket = dat::top::connect_to_domain(name);
            if (!socket) {
                continue; // many wait
            }
            pollfd fd{socket.get(), POLLIN, 0};
            if (poll(&fd, 1, 20000) != 1) {
                said = 't';
            } else if (given(socket)) {
                said = 'g';
            }
        }
        _exit(write(pipes[1], &said, 1) == 1 ? 0 : 3);
    }
    char said = 0;
    cr_assert(scene.run([&] { return read(pipes[0], &said, 1) == 1; }));
    cr_assert_eq(said, 'c', "a stranger was given something, or left waiting: %c", said);
    int status = 0;
    waitpid(stranger, &status, 0);
    cr_assert_eq(status, 0);
    scene.look(); // this user is let in as before
    scene.next_sheet();
}
