// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See look.h.
#include "look.h"

#include "page_socket.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <sstream>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <system_error>
#include <tuple>
#include <unistd.h>
#include <utility>

namespace dat::top {
namespace {

namespace page = engine::page;

std::uint64_t now(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(time.tv_nsec);
}

std::string first_line(const std::string& file) {
    std::ifstream in(file);
    std::string line;
    std::getline(in, line);
    return line;
}

// The inodes of a process's sockets; none where they may not be seen.
std::vector<std::string> sockets_of(pid_t process) {
    constexpr std::string_view kBegin = "socket:[";
    std::vector<std::string> inodes;
    std::error_code error;
    const std::filesystem::path folder = "/proc/" + std::to_string(process) + "/fd";
    for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
         at.increment(error)) {
        std::error_code unread;
        const std::string target = std::filesystem::read_symlink(at->path(), unread).string();
        if (target.starts_with(kBegin)) {
            inodes.push_back(target.substr(kBegin.size(), target.size() - kBegin.size() - 1));
        }
    }
    return inodes;
}

} // namespace

std::vector<Listening> listening(const std::string& file) {
    constexpr char kListening[] = "00010000"; // __SO_ACCEPTCON
    std::vector<Listening> all;
    std::ifstream in(file);
    std::string line;
    std::getline(in, line); // the heading
    while (std::getline(in, line)) {
        std::istringstream words(line);
        std::string number, references, protocol, flags, type, state, inode, name;
        words >> number >> references >> protocol >> flags >> type >> state >> inode >> name;
        const std::string_view prefix = page::kSocketPrefix;
        if (flags == kListening && name.starts_with('@') &&
            std::string_view(name).substr(1).starts_with(prefix)) {
            all.push_back({name.substr(1), inode});
        }
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

// One domain, from the connection to its socket on.
class Looker::Watched {
  public:
    explicit Watched(std::string name) : name_(std::move(name)) {}
    ~Watched() {
        if (page_) {
            munmap(const_cast<page::Page*>(page_), sizeof(page::Page));
        }
    }

    // refused: it has closed at once, as one does at which too many look
    enum class Standing { gone, stranger, refused, waits, seen };
    Standing standing() const { return standing_; }
    int fd() const { return socket_.get(); }

    void join_host() {
        socket_ = connect_to_domain(name_);
        if (!socket_) {
            // So many wait there that nobody can be taking them in: ask again at the next look.
            return leave(errno == EAGAIN ? Standing::waits : Standing::gone);
        }
        ucred who{};
        socklen_t who_size = sizeof who;
        getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &who, &who_size);
        process_ = who.pid;
        user_ = who.uid;
        // What another user's process gives is not taken, but by root.
        standing_ = user_ == geteuid() || geteuid() == 0 ? Standing::waits : Standing::stranger;
        if (standing_ == Standing::stranger) {
            leave(standing_);
        }
    }

    // Something has come, or the end.
    void hear() {
        const Given given = receive_page(socket_);
        if (given.length < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (given.length == 0 && !page_) {
            return leave(Standing::refused);
        }
        if (page_ || given.length != sizeof given.hello || given.hello != page::kMagic ||
            !given.one || !map(given.memory.get())) {
            return leave(Standing::gone);
        }
        standing_ = Standing::seen;
    }

    Domain domain() const {
        Domain domain;
        domain.socket = name_;
        domain.process = process_;
        domain.user = user_;
        if (process_ > 0) {
            domain.command =
                command::printable(first_line("/proc/" + std::to_string(process_) + "/comm"));
        }
        if (!page_) {
            return domain;
        }
        domain.answers = true;
        domain.name = clean(page_->name);
        domain.version = clean(page_->version);
        domain.opened_ns = page_->opened_ns;
        domain.sheet = std::make_unique<page::Sheet>();
        if (page::read_sheet(*page_, *domain.sheet)) {
            const std::uint64_t written = domain.sheet->totals.written_ns;
            const std::uint64_t time = now(CLOCK_MONOTONIC);
            domain.age_s = time > written ? static_cast<double>(time - written) / 1e9 : 0;
            domain.stands_still =
                domain.age_s > 1 + 2 * static_cast<double>(page_->period_ns) / 1e9;
        } else {
            domain.sheet.reset();
        }
        page::read_ends(*page_, [&](const page::End& end) { domain.ends.push_back(end); });
        return domain;
    }

  private:
    void leave(Standing standing) {
        standing_ = standing;
        socket_.reset();
    }

    // The seals come first: what has some is memory of the kernel's, and nobody's file system is
    // asked; and it cannot be cut off, which would end this process.
    bool map(int fd) {
        struct stat status {};
        const int seals = fcntl(fd, F_GET_SEALS);
        if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd, &status) != 0 ||
            status.st_size != static_cast<off_t>(sizeof(page::Page))) {
            return false;
        }
        void* const mapped = mmap(nullptr, sizeof(page::Page), PROT_READ, MAP_SHARED, fd, 0);
        if (mapped == MAP_FAILED) {
            return false;
        }
        page_ = static_cast<const page::Page*>(mapped);
        return page_->magic == page::kMagic;
    }

    const std::string name_;
    Descriptor socket_;
    pid_t process_ = 0;
    uid_t user_ = 0;
    Standing standing_ = Standing::gone;
    const page::Page* page_ = nullptr;
};

Looker::Looker() = default;
Looker::~Looker() = default;

// Those that are new are asked, those that have gone forgotten.
void Looker::find(std::optional<pid_t> only) {
    std::vector<Listening> there = listening("/proc/net/unix");
    if (only) {
        const std::vector<std::string> inodes = sockets_of(*only);
        std::erase_if(there, [&](const Listening& each) {
            return std::find(inodes.begin(), inodes.end(), each.inode) == inodes.end();
        });
    }
    std::erase_if(watched_, [&](const auto& known) {
        return std::none_of(there.begin(), there.end(),
                            [&](const Listening& each) { return each.name == known.first; });
    });
    for (const Listening& each : there) {
        std::unique_ptr<Watched>& watched = watched_[each.name];
        if (!watched || watched->standing() == Watched::Standing::refused ||
            (watched->standing() == Watched::Standing::waits && watched->fd() < 0)) {
            watched = std::make_unique<Watched>(each.name);
            watched->join_host();
        }
    }
}

Sight Looker::look(std::chrono::milliseconds patience, std::optional<pid_t> only) {
    using Standing = Watched::Standing;
    const auto deadline = std::chrono::steady_clock::now() + patience;
    find(only);
    for (;;) {
        std::vector<pollfd> fds;
        std::vector<Watched*> asked;
        bool any_waits = false;
        for (const auto& [name, watched] : watched_) {
            const bool waits = watched->standing() == Standing::waits && watched->fd() >= 0;
            any_waits = any_waits || waits;
            if (waits || watched->standing() == Standing::seen) { // and whether it is there still
                fds.push_back({watched->fd(), POLLIN, 0});
                asked.push_back(watched.get());
            }
        }
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            deadline - std::chrono::steady_clock::now());
        const int wait = any_waits ? static_cast<int>(std::max<std::int64_t>(0, left.count())) : 0;
        if (poll(fds.data(), fds.size(), wait) <= 0) {
            break;
        }
        for (std::size_t i = 0; i < fds.size(); ++i) {
            if (fds[i].revents != 0) {
                asked[i]->hear();
            }
        }
    }
    Sight sight;
    const std::vector<Listening> there = listening("/proc/net/unix");
    for (const auto& [name, watched] : watched_) {
        if (std::ranges::find(there, name, &Listening::name) == there.end()) {
            continue; // it has ended meanwhile
        }
        if (watched->standing() == Standing::stranger) {
            ++sight.of_others;
        } else if (watched->standing() != Standing::gone) {
            sight.domains.push_back(watched->domain());
        }
    }
    std::sort(sight.domains.begin(), sight.domains.end(), [](const Domain& a, const Domain& b) {
        return std::tie(a.process, a.opened_ns, a.socket) <
               std::tie(b.process, b.opened_ns, b.socket);
    });
    sight.now_ns = now(CLOCK_MONOTONIC);
    return sight;
}

} // namespace dat::top
