// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See trace.h.
#include "engine/trace.h"

#include "base/log.h"
#include "core/ep_state.h"
#include "engine/endpoint.h"
#include "engine/proc.h"
#include "engine/settings.h"

// Each probe here has a counter of who listens, which is in the section `.probes`.
#define _SDT_HAS_SEMAPHORES 1
#include "engine/probes.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <mutex>
#include <new>
#include <string_view>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <utility>

#ifdef HAVE_SYS_SDT_H
extern "C" {
#define DAT_COUNTER(name)                                                                          \
    [[gnu::section(".probes"), gnu::used,                                                          \
      gnu::visibility("hidden")]] volatile unsigned short dat_##name##_semaphore = 0
DAT_COUNTER(transition);
DAT_COUNTER(request_posted);
DAT_COUNTER(receive_posted);
DAT_COUNTER(request_completed);
DAT_COUNTER(receive_completed);
DAT_COUNTER(frame);
#undef DAT_COUNTER
}
#define DAT_PROBED(name) (dat_##name##_semaphore != 0)
#else
#define DAT_PROBED(name) false
#endif

namespace dat::engine {

using base::TraceKind;
using base::TraceRing;

namespace {

std::uint64_t now_of(clockid_t clock) {
    timespec t{};
    clock_gettime(clock, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(t.tv_nsec);
}

template <std::size_t N> void copy_text(std::array<char, N>& to, std::string_view from) {
    to = {};
    std::copy_n(from.begin(), std::min(from.size(), N - 1), to.begin());
}

// A line of a file of the kernel, without its end; empty: there is none.
template <std::size_t N> std::string_view line_of(const char* path, std::array<char, N>& room) {
    const std::string_view whole = text_of(path, room);
    return whole.substr(0, whole.find('\n'));
}

// What has the same CLOCK_MONOTONIC: this boot of this machine, and the same time namespace.
void name_clock(std::array<char, 64>& clock) {
    std::array<char, 64> room;
    std::string_view boot = line_of("/proc/sys/kernel/random/boot_id", room);
    copy_text(clock, boot);
    struct stat ns {};
    if (boot.empty() || stat("/proc/self/ns/time", &ns) != 0) {
        return;
    }
    char* const at = clock.data() + boot.size();
    std::snprintf(at, clock.size() - boot.size(), " %llu",
                  static_cast<unsigned long long>(ns.st_ino));
}

[[maybe_unused]] constexpr const char* op_name(base::TraceOp op) {
    constexpr std::array<const char*, 8> kNames{
        "send", "send_invalidate", "write", "bind", "read", "fetch_add", "compare_swap", "receive"};
    return kNames[static_cast<std::size_t>(op)];
}

base::TraceOp op_of(OpCode op) { return static_cast<base::TraceOp>(op); }
static_assert(static_cast<int>(base::TraceOp::compare_swap) ==
              static_cast<int>(OpCode::compare_swap));

bool is_message(OpCode op) { return op == OpCode::send || op == OpCode::send_invalidate; }

} // namespace

std::uint64_t trace_now_ns() { return now_of(CLOCK_MONOTONIC); }

Trace::~Trace() {
    if (memory_) {
        munmap(memory_, size_);
    }
    if (fd_ >= 0) {
        close(fd_);
    }
}

int Trace::open(const char* path, std::size_t bytes, base::TraceSource source) {
    const int fd = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return -errno;
    }
    const auto undo = [fd](int error) {
        close(fd);
        return -error;
    };
    struct stat what {};
    if (fstat(fd, &what) != 0 || !S_ISREG(what.st_mode)) {
        return undo(EINVAL);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        return undo(errno);
    }
    base::TraceHeader header{};
    const std::size_t records = std::max<std::size_t>(bytes / sizeof(base::TraceRecord), 64);
    header.capacity = {records / 16, records - records / 16};
    header.version = base::kTraceVersion;
    header.header_size = base::kTraceHeaderSize;
    header.record_size = sizeof(base::TraceRecord);
    size_ = base::trace_file_size(header);
    if (ftruncate(fd, 0) != 0) {
        return undo(errno);
    }
    if (const int error = posix_fallocate(fd, 0, static_cast<off_t>(size_))) {
        (void)!ftruncate(fd, 0);
        return undo(error);
    }
    void* const at = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        return undo(errno);
    }
    header.pid = static_cast<std::uint32_t>(getpid());
    header.started_ns = trace_now_ns();
    header.started_real_ns = now_of(CLOCK_REALTIME);
    header.table = core::table_fingerprint();
    header.source = source;
    name_clock(header.clock);
    utsname names{};
    uname(&names);
    copy_text(header.host, names.nodename);
    copy_text(header.program, program_invocation_short_name);
    memory_ = static_cast<std::byte*>(at);
    std::memcpy(memory_, &header, sizeof header);
    writer_ = base::TraceWriter(memory_);
    // Last, so that what has it is whole.
    base::release_fence();
    std::memcpy(memory_, base::kTraceMagic.data(), base::kTraceMagic.size());
    fd_ = fd;
    return 0;
}

Trace& Trace::nowhere() {
    static Trace none;
    return none;
}

namespace {

// A name that no living process writes to: the one that is set, or with this process's number
// behind it, and then a count, where another process, or another copy of the provider in this
// one, has that. 0 or -errno.
int open_any(Trace& trace, const Settings& settings, std::string& path) {
    path = settings.trace;
    const std::string pid = std::to_string(getpid());
    if (const std::size_t at = path.find("%p"); at != std::string::npos) {
        path.replace(at, 2, pid);
    }
    const std::string first = path;
    int error = trace.open(path.c_str(), settings.trace_bytes, base::TraceSource::provider);
    for (int i = 0; error == -EWOULDBLOCK && i < 100; ++i) {
        path = first + "." + pid + (i > 0 ? "." + std::to_string(i) : "");
        error = trace.open(path.c_str(), settings.trace_bytes, base::TraceSource::provider);
    }
    return error;
}

} // namespace

Trace* Trace::of_process(const Settings& settings) {
    static std::mutex mutex;
    static Trace* trace = nullptr;
    static pid_t owner = 0;
    if (settings.trace.empty()) {
        return nullptr;
    }
    const std::lock_guard lock(mutex);
    if (owner == getpid()) {
        return trace;
    }
    auto made = std::make_unique<Trace>();
    std::string path;
    const int error = open_any(*made, settings, path);
    owner = getpid();
    if (error != 0) {
        trace = nullptr;
        DAT_WARN(core, "FI_DAT_TRACE=\"%s\": nothing is recorded: %s: %s", settings.trace.c_str(),
                 path.c_str(),
                 error == -EINVAL ? "it has to be a regular file" : std::strerror(-error));
        return nullptr;
    }
    DAT_INFO(core, "what happens is recorded in %s, for dat_trace(1)", path.c_str());
    made->set_frames(settings.trace_frames);
    trace = made.release(); // until the process ends: its endpoints may be anybody's
    return trace;
}

bool operations_are_probed() {
    return DAT_PROBED(request_posted) || DAT_PROBED(receive_posted) ||
           DAT_PROBED(request_completed) || DAT_PROBED(receive_completed) || DAT_PROBED(frame);
}

void probe_transition([[maybe_unused]] const void* endpoint,
                      [[maybe_unused]] core::Stimulus stimulus, [[maybe_unused]] core::State from,
                      [[maybe_unused]] const core::Endpoint& after,
                      [[maybe_unused]] const core::Outcome& outcome,
                      [[maybe_unused]] core::Reason reason) {
    if (DAT_PROBED(transition)) [[unlikely]] {
        DAT_PROBE(transition, endpoint, core::name(stimulus).data(), core::name(from).data(),
                  core::name(after.state()).data(), core::name(outcome.event).data(),
                  static_cast<int>(reason), core::clauses(stimulus).data());
    }
}

EndpointTrace::EndpointTrace(Trace& trace, const void* endpoint, core::State initial)
    : trace_(trace), endpoint_(endpoint), number_(trace.next_endpoint()) {
    base::TraceOpened body{};
    body.state = static_cast<std::uint8_t>(initial);
    trace_.write(TraceRing::connections, TraceKind::opened, number_, body);
}

void EndpointTrace::transition(core::Stimulus stimulus, core::State from, core::Attempt attempt,
                               const core::Endpoint& after, const core::Outcome& outcome, bool late,
                               core::Reason reason, std::uint32_t terminate_code) {
    base::TraceTransition body{};
    body.attempt = static_cast<std::uint32_t>(attempt);
    body.attempt_after = static_cast<std::uint32_t>(after.attempt());
    body.terminate_code = terminate_code;
    body.stimulus = static_cast<std::uint8_t>(stimulus);
    body.from = static_cast<std::uint8_t>(from);
    body.to = static_cast<std::uint8_t>(after.state());
    body.verdict = static_cast<std::uint8_t>(outcome.verdict);
    body.event = static_cast<std::uint8_t>(outcome.event);
    body.recorded = static_cast<std::uint8_t>(after.recorded());
    body.flush = static_cast<std::uint8_t>(outcome.flush);
    body.reason = static_cast<std::uint8_t>(reason);
    body.late = late ? 1 : 0;
    trace_.write(TraceRing::connections, TraceKind::transition, number_, body);
}

void EndpointTrace::peer(const base::TracePeer& peer) {
    trace_.write(TraceRing::connections, TraceKind::peer, number_, peer);
}

void EndpointTrace::clock(bool asked, core::Attempt attempt, std::uint64_t first_ns,
                          std::uint64_t second_ns) {
    base::TraceClock body{};
    body.first_ns = first_ns;
    body.second_ns = second_ns;
    body.attempt = static_cast<std::uint32_t>(attempt);
    body.asked = asked ? 1 : 0;
    trace_.write(TraceRing::connections, TraceKind::clock, number_, body);
}

// Messages are counted anew with each attempt.
void EndpointTrace::begin(core::Attempt attempt) {
    if (attempt != attempt_) {
        attempt_ = attempt;
        sends_ = receives_ = 0;
    }
}

void EndpointTrace::write(TraceKind kind, const base::TraceOperation& operation) {
    trace_.write(TraceRing::operations, kind, number_, operation);
}

void EndpointTrace::posted(std::uint64_t seq, const Request& request, core::Attempt attempt) {
    begin(attempt);
    const bool message = is_message(request.op);
    base::TraceOperation body{};
    body.seq = seq;
    body.length = request.length;
    body.context = reinterpret_cast<std::uintptr_t>(request.context);
    body.message = message ? sends_++ : base::kTraceNoMessage;
    body.attempt = static_cast<std::uint32_t>(attempt);
    body.op = op_of(request.op);
    body.silent = !request.signaled;
    write(TraceKind::posted, body);
    DAT_PROBE(request_posted, endpoint_, op_name(body.op), seq, body.length);
}

void EndpointTrace::posted(std::uint64_t seq, const Receive& receive, core::Attempt attempt) {
    begin(attempt);
    base::TraceOperation body{};
    body.seq = seq;
    body.length = receive.capacity;
    body.context = reinterpret_cast<std::uintptr_t>(receive.context);
    body.message = base::kTraceNoMessage;
    body.attempt = static_cast<std::uint32_t>(attempt);
    body.op = base::TraceOp::receive;
    body.silent = !receive.signaled;
    write(TraceKind::posted, body);
    DAT_PROBE(receive_posted, endpoint_, seq, body.length);
}

void EndpointTrace::completed(std::uint64_t seq, const Request& request, core::DtoStatus status,
                              core::Attempt attempt) {
    base::TraceOperation body{};
    body.seq = seq;
    body.length = status == core::DtoStatus::success ? request.length : 0;
    body.context = reinterpret_cast<std::uintptr_t>(request.context);
    body.message = base::kTraceNoMessage;
    body.attempt = static_cast<std::uint32_t>(attempt);
    body.op = op_of(request.op);
    body.status = static_cast<std::uint8_t>(status);
    body.silent = !request.signaled;
    write(TraceKind::completed, body);
    DAT_PROBE(request_completed, endpoint_, op_name(body.op), seq, body.length,
              static_cast<int>(status));
}

void EndpointTrace::completed(std::uint64_t seq, const Receive& receive, core::DtoStatus status,
                              std::size_t length, bool message, core::Attempt attempt) {
    begin(attempt);
    base::TraceOperation body{};
    body.seq = seq;
    body.length = length;
    body.context = reinterpret_cast<std::uintptr_t>(receive.context);
    body.message =
        message && status != core::DtoStatus::flushed ? receives_++ : base::kTraceNoMessage;
    body.attempt = static_cast<std::uint32_t>(attempt);
    body.op = base::TraceOp::receive;
    body.status = static_cast<std::uint8_t>(status);
    body.silent = !receive.signaled;
    write(TraceKind::completed, body);
    DAT_PROBE(receive_completed, endpoint_, seq, body.length, static_cast<int>(status));
}

void EndpointTrace::frame(bool out, const base::TraceFrame& frame) {
    trace_.write(TraceRing::operations, out ? TraceKind::frame_out : TraceKind::frame_in, number_,
                 frame);
    DAT_PROBE(frame, endpoint_, out ? 1 : 0, static_cast<int>(frame.opcode), frame.length);
}

} // namespace dat::engine
