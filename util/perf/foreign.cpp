// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See foreign.h.
#include "foreign.h"

#include "buffer.h"
#include "net.h"
#include "pair.h"
#include "patterns.h"
#include "way.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <fstream>
#include <signal.h>
#include <sstream>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dat::perf {
namespace {

constexpr char kUcx[] = "ucx_perftest";

// A file of that name in a folder of PATH that can be run; empty: there is none.
std::string found(const std::string& name) {
    const char* const path = std::getenv("PATH");
    std::istringstream folders(path ? path : "/usr/bin:/bin");
    for (std::string folder; std::getline(folders, folder, ':');) {
        std::string file = folder + "/" + name;
        if (::access(file.c_str(), X_OK) == 0) {
            return file;
        }
    }
    return {};
}

// A program that is running, with what it prints; ends with this object.
class Program {
  public:
    Program(const std::vector<std::string>& words, const Way& way) {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) {
            fail("pipe: %s", std::strerror(errno));
        }
        out_ = Fd(ends[0]);
        Fd write_end(ends[1]);
        std::vector<char*> arguments;
        arguments.reserve(words.size() + 1);
        for (const std::string& word : words) {
            arguments.push_back(const_cast<char*>(word.c_str()));
        }
        arguments.push_back(nullptr);
        pid_ = ::fork();
        if (pid_ < 0) {
            fail("fork: %s", std::strerror(errno));
        }
        if (pid_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGTERM);
            ::dup2(write_end.get(), STDOUT_FILENO);
            ::dup2(write_end.get(), STDERR_FILENO);
            for (const auto& [variable, value] : way.environment) {
                ::setenv(variable.c_str(), value.c_str(), 1);
            }
            ::execvp(arguments[0], arguments.data());
            std::_Exit(127);
        }
    }
    ~Program() {
        if (pid_ > 0) {
            ::kill(pid_, SIGTERM);
            ::waitpid(pid_, nullptr, 0);
        }
    }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    // All that it prints, when it has ended. Throws Failure where it did not end well.
    std::string output(const char* name) {
        std::string text;
        char bytes[4096];
        for (ssize_t n = 0; (n = ::read(out_.get(), bytes, sizeof bytes)) != 0;) {
            if (n < 0 && errno != EINTR) {
                break;
            }
            text.append(bytes, n > 0 ? static_cast<std::size_t>(n) : 0);
        }
        int status = 0;
        while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
        }
        pid_ = -1;
        if (status != 0) {
            fail("%s ended with status %d: %s", name,
                 WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
                 last_line(text).c_str());
        }
        return text;
    }
    bool runs() {
        if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == pid_) {
            pid_ = -1;
        }
        return pid_ > 0;
    }
    static std::string last_line(const std::string& text) {
        std::istringstream lines(text);
        std::string last;
        for (std::string line; std::getline(lines, line);) {
            last = line.empty() ? last : line;
        }
        return last;
    }

  private:
    pid_t pid_ = -1;
    Fd out_;
};

// --- UCX --------------------------------------------------------------------

const char* ucx_test(Pattern pattern) {
    switch (pattern) {
    case Pattern::ping:
        return "tag_lat";
    case Pattern::stream:
        return "tag_bw";
    case Pattern::write:
        return "ucp_put_bw";
    default:
        throw NotOffered(
            "ucx_perftest is asked for latency, bandwidth, rate and RDMA writes alone");
    }
}

bool listens(std::uint16_t port) {
    char wanted[8];
    std::snprintf(wanted, sizeof wanted, ":%04X", port);
    for (const char* name : {"/proc/net/tcp", "/proc/net/tcp6"}) {
        std::ifstream file(name);
        for (std::string line; std::getline(file, line);) {
            std::istringstream words(line);
            std::string number;
            std::string local;
            std::string remote;
            std::string state;
            words >> number >> local >> remote >> state;
            if (state == "0A" && local.size() > 5 && local.substr(local.size() - 5) == wanted) {
                return true;
            }
        }
    }
    return false;
}

std::uint16_t free_port() {
    const Fd socket(listen_on("", "0"));
    return own_port(socket.get());
}

struct UcxFigures {
    double median_us = 0;
    double mean_us = 0;
    double per_second = 0;
};

// The last line: iterations, latencies (median, mean, overall), bandwidths and rates (mean,
// overall).
UcxFigures ucx_figures(const std::string& text) {
    std::string line = Program::last_line(text);
    std::ranges::replace(line, ',', ' ');
    std::istringstream words(line);
    std::array<double, 8> fields{};
    for (double& field : fields) {
        words >> field;
    }
    if (words.fail()) {
        fail("%s prints something else than expected: %s", kUcx, line.c_str());
    }
    return {fields[1], fields[2], fields[7]};
}

UcxFigures ucx_client(const Case& what, Peer& peer, std::uint64_t operations) {
    peer.tell("run");
    const std::string where = peer.hear();
    const std::size_t space = where.find(' ');
    Program client({kUcx, where.substr(0, space), "-p", where.substr(space + 1), "-t",
                    ucx_test(what.pattern), "-s", std::to_string(what.size), "-n",
                    std::to_string(operations), "-w",
                    std::to_string(std::min<std::uint64_t>(operations / 10 + 1, 1000)), "-f", "-v"},
                   what.way);
    return ucx_figures(client.output(kUcx));
}

Result ucx_server(const Case& what, Peer& peer) {
    while (peer.hear_within(limit_s(what)) == "run") {
        const std::uint16_t port = free_port();
        Program server({kUcx, "-p", std::to_string(port), "-f", "-v"}, what.way);
        if (!comes([&] { return !server.runs() || listens(port); }) || !server.runs()) {
            fail("%s does not listen: %s", kUcx, server.output(kUcx).c_str());
        }
        peer.tell(what.address + " " + std::to_string(port));
        server.output(kUcx);
    }
    return {};
}

// --- Open MPI ---------------------------------------------------------------

std::string mpirun() {
    const std::string own = found("mpirun.openmpi"); // Debian's, whatever mpirun stands for
    return own.empty() ? found("mpirun") : own;
}

constexpr char kMark[] = "dat_perf-result ";

std::string hex_of(const std::string& bytes) {
    std::string text;
    for (const char byte : bytes) {
        char two[3];
        std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(byte));
        text += two;
    }
    return text;
}

std::string from_hex(const std::string& text) {
    std::string bytes;
    for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
        bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
    }
    return bytes;
}

} // namespace

std::vector<Way> parse_foreign(std::string_view text) {
    std::vector<Way> ways = parse_ways(text);
    for (Way& way : ways) {
        if (way.provider != "ucx" && way.provider != "openmpi") {
            throw Usage("'" + way.provider + "' cannot be measured beside: ucx, openmpi");
        }
        way.kind = way.provider == "ucx" ? Kind::ucx : Kind::mpi;
    }
    return ways;
}

std::string require_foreign(const Way& way, bool two_hosts) {
    if (way.kind == Kind::ucx) {
        if (found(kUcx).empty()) {
            throw NotOffered(std::string(kUcx) + " is not installed (Debian: ucx-utils)");
        }
        return {};
    }
    if (two_hosts) {
        throw NotOffered("Open MPI is measured on one host alone: mpirun starts both processes");
    }
    if (mpirun().empty()) {
        throw NotOffered("mpirun is not installed (Debian: openmpi-bin)");
    }
    return {};
}

Result run_ucx(const Case& what, Peer& peer) {
    ucx_test(what.pattern);
    require_foreign(what.way, false);
    if (what.waits || what.threads > 1) {
        throw NotOffered("ucx_perftest is measured polling, with one thread");
    }
    if (!peer.client()) {
        return ucx_server(what, peer);
    }
    const auto seconds = [](const UcxFigures& figures, std::uint64_t operations) {
        return static_cast<double>(operations) / std::max(figures.per_second, 1e-9);
    };
    std::uint64_t count = what.amount.operations;
    if (count == 0) {
        const std::uint64_t warm = warm_operations(what);
        count = wanted_operations(what.amount, warm, seconds(ucx_client(what, peer, warm), warm));
    }
    count = std::max<std::uint64_t>(count, 10); // fewer it does not take
    peer.meet_crowd([] {});
    const UcxFigures figures = ucx_client(what, peer, count);
    peer.tell("end");
    Result result;
    result.operations = count;
    const bool ping = what.pattern == Pattern::ping; // its latency is half a round trip
    result.seconds =
        ping ? 2e-6 * figures.mean_us * static_cast<double>(count) : seconds(figures, count);
    result.median_s = ping ? 2e-6 * figures.median_us : 0;
    std::snprintf(result.what, sizeof result.what, "%s -t %s", kUcx, ucx_test(what.pattern));
    return result;
}

CaseOutcome run_mpi(const Case& what, bool two_hosts) {
    const auto alone = [&]() -> std::string {
        require_foreign(what.way, two_hosts);
        if (what.pattern != Pattern::ping && what.pattern != Pattern::stream) {
            throw NotOffered("Open MPI is measured with latency, bandwidth and rate alone");
        }
        if (what.waits || link_count(what) > 1) {
            throw NotOffered("Open MPI is measured polling, with one pair of processes");
        }
        ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
        ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
        ::setenv("OMPI_MCA_pml", "ob1", 1);
        ::setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
        char self[4096] = "";
        if (::readlink("/proc/self/exe", self, sizeof self - 1) < 0) {
            fail("/proc/self/exe: %s", std::strerror(errno));
        }
        Program run({mpirun(), "-np", "2", self, kMpiSide, name(what.pattern),
                     std::to_string(what.size), std::to_string(what.amount.operations),
                     std::to_string(what.amount.seconds)},
                    what.way);
        const std::string text = run.output("mpirun");
        const std::size_t at = text.find(kMark);
        if (at == std::string::npos) {
            fail("mpirun: %s", Program::last_line(text).c_str());
        }
        const std::size_t begin = at + sizeof kMark - 1;
        return from_hex(text.substr(begin, text.find('\n', at) - begin));
    };
    const Outcome outcome = run_alone(alone, limit_s(what));
    CaseOutcome all{outcome.ending, outcome.why, {}, {}};
    if (outcome.ending == Ending::right) {
        all.client = from_bytes<Result>(outcome.client);
    }
    return all;
}

// --- the processes of mpirun --------------------------------------------------

namespace {

using Handle = void*; // of Open MPI's binary interface: a communicator, a type, a request

struct Mpi {
    Handle library = ::dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL);
    template <class F> F* function(const char* name) const {
        auto* const found = reinterpret_cast<F*>(::dlsym(library, name));
        if (!found) {
            fail("Open MPI 4 or 5 has %s, what is here does not", name);
        }
        return found;
    }
    Handle object(const char* name) const { return function<char>(name); }

    Mpi() {
        if (!library) {
            fail("%s", ::dlerror());
        }
    }
};

// Both processes; rank 1 is the client, as in a pair here.
class MpiSide {
  public:
    explicit MpiSide(const Case& what)
        : what_(what), out_(what.size), in_(what.size), world_(mpi_.object("ompi_mpi_comm_world")),
          byte_(mpi_.object("ompi_mpi_byte")), send_(mpi_.function<Send>("MPI_Send")),
          post_receive_(mpi_.function<Post>("MPI_Irecv")), post_(mpi_.function<Post>("MPI_Isend")),
          wait_(mpi_.function<Wait>("MPI_Wait")), wait_all_(mpi_.function<WaitAll>("MPI_Waitall")) {
        mpi_.function<int(int*, char***)>("MPI_Init")(nullptr, nullptr);
        mpi_.function<int(Handle, int*)>("MPI_Comm_rank")(world_, &rank_);
        fill_bytes(out_.data(), what.size, static_cast<unsigned>(rank_));
    }
    ~MpiSide() { mpi_.function<int()>("MPI_Finalize")(); }
    MpiSide(const MpiSide&) = delete;
    MpiSide& operator=(const MpiSide&) = delete;

    bool client() const { return rank_ == 1; }
    Result run() {
        const std::uint64_t warm = warm_operations(what_);
        const bool ping = what_.pattern == Pattern::ping;
        const auto operate = [&](std::uint64_t n) { ping ? pings(n) : stream(n); };
        operate(warm);
        const Stopwatch warming;
        operate(warm);
        std::uint64_t count = wanted_operations(what_.amount, warm, warming.seconds());
        exchange(count);
        Result result;
        if (ping) {
            in_pieces(result, count, operate);
            Singles singles;
            for (std::uint64_t i = std::min(count, Singles::kMost); i > 0; --i) {
                pings(1);
                singles.next(result);
            }
        } else {
            const Stopwatch watch;
            operate(count);
            watch.stop(result);
            result.operations = count;
        }
        check_bytes(in_.data(), client() && !ping ? 1 : what_.size,
                    static_cast<unsigned>(1 - rank_));
        std::array<char, 256> version{};
        int length = 0;
        mpi_.function<int(char*, int*)>("MPI_Get_library_version")(version.data(), &length);
        const std::string text(version.data(), std::min<std::size_t>(version.size(), 64));
        std::snprintf(result.what, sizeof result.what, "%s, pml ob1",
                      text.substr(0, text.find(',')).c_str());
        return result;
    }

  private:
    using Send = int(const void*, int, Handle, int, int, Handle);
    using Post = int(void*, int, Handle, int, int, Handle, Handle*);
    using Wait = int(Handle*, void*);
    using WaitAll = int(int, Handle*, void*);

    // The client's number becomes the server's.
    void exchange(std::uint64_t& number) {
        if (client()) {
            send_(&number, sizeof number, byte_, other(), 1, world_);
        } else {
            Handle request = nullptr;
            post_receive_(&number, sizeof number, byte_, other(), 1, world_, &request);
            wait_(&request, nullptr);
        }
    }
    int other() const { return 1 - rank_; }
    int size() const { return static_cast<int>(what_.size); }
    void pings(std::uint64_t n) {
        for (std::uint64_t i = 0; i < n; ++i) {
            Handle request = nullptr;
            post_receive_(in_.data(), size(), byte_, other(), 0, world_, &request);
            if (client()) {
                send_(out_.data(), size(), byte_, other(), 0, world_);
            }
            wait_(&request, nullptr);
            if (!client()) {
                send_(out_.data(), size(), byte_, other(), 0, world_);
            }
        }
    }
    // In parts of as many as are posted at once; a byte comes back behind the last.
    void stream(std::uint64_t n) {
        std::array<Handle, kQueue> requests{};
        for (std::uint64_t left = n; left > 0;) {
            const auto part = static_cast<int>(std::min<std::uint64_t>(left, kQueue));
            for (int i = 0; i < part; ++i) {
                Handle* const request = &requests[static_cast<std::size_t>(i)];
                client() ? post_(out_.data(), size(), byte_, other(), 0, world_, request)
                         : post_receive_(in_.data(), size(), byte_, other(), 0, world_, request);
            }
            wait_all_(part, requests.data(), nullptr);
            left -= static_cast<std::uint64_t>(part);
        }
        if (client()) {
            Handle request = nullptr;
            post_receive_(in_.data(), 1, byte_, other(), 2, world_, &request);
            wait_(&request, nullptr);
        } else {
            send_(out_.data(), 1, byte_, other(), 2, world_);
        }
    }

    const Case what_;
    Mpi mpi_;
    Buffer out_;
    Buffer in_;
    Handle world_;
    Handle byte_;
    Send* send_;
    Post* post_receive_;
    Post* post_;
    Wait* wait_;
    WaitAll* wait_all_;
    int rank_ = 0;
};

} // namespace

int mpi_side(int argc, char** argv) {
    if (argc != 6) {
        std::fprintf(stderr, "dat_perf: %s is for mpirun alone\n", kMpiSide);
        return 2;
    }
    try {
        Case what;
        what.pattern =
            argv[2] == std::string_view(name(Pattern::ping)) ? Pattern::ping : Pattern::stream;
        what.size = std::stoul(argv[3]);
        what.amount = {std::stoull(argv[4]), std::stod(argv[5])};
        Result result;
        {
            MpiSide side(what);
            result = side.run();
            if (!side.client()) {
                return 0;
            }
        }
        result.pinned = two_processors();
        std::printf("%s%s\n", kMark, hex_of(as_bytes(result)).c_str());
        return 0;
    } catch (const std::exception& why) {
        std::fprintf(stderr, "dat_perf: %s\n", why.what());
        return 1;
    }
}

} // namespace dat::perf
