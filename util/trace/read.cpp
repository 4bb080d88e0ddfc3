// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// From files to a model: records, states, operations. See model.h.
#include "base/fence.h"
#include "trace/join.h"
#include "trace/model.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <queue>
#include <sys/stat.h>
#include <unistd.h>
#include <unordered_map>

namespace dat::trace {

using base::TraceHeader;
using base::TraceKind;
using base::TraceRecord;

namespace {

// A file that may be written to, or cut off, while it is read. It is not mapped: what is cut off of
// a mapping ends the process that looks at it.
class File {
  public:
    explicit File(const std::string& path) : path_(path) {
        struct stat what {};
        if (stat(path.c_str(), &what) != 0) {
            throw Unusable(path + ": " + std::strerror(errno));
        }
        if (!S_ISREG(what.st_mode)) { // not even opened: a FIFO would wait for a writer
            throw Unusable(path + kNone);
        }
        fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd_ < 0) {
            throw Unusable(path + ": " + std::strerror(errno));
        }
        size_ = fstat(fd_, &what) == 0 && S_ISREG(what.st_mode)
                    ? static_cast<std::uint64_t>(what.st_size)
                    : 0;
    }
    ~File() {
        if (fd_ >= 0) {
            close(fd_);
        }
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    std::uint64_t size() const { return size_; } // as it was opened
    [[noreturn]] void is_none() const { throw Unusable(path_ + kNone); }

    // How many of `size` bytes at `offset` there are.
    std::size_t read(std::uint64_t offset, void* into, std::size_t size) const {
        std::size_t done = 0;
        while (done < size) {
            const ssize_t n = pread(fd_, static_cast<char*>(into) + done, size - done,
                                    static_cast<off_t>(offset + done));
            if (n == 0 || (n < 0 && errno != EINTR)) {
                break;
            }
            done += n > 0 ? static_cast<std::size_t>(n) : 0;
        }
        return done;
    }
    // Where the first byte is from there on that was ever written; size() where there is none.
    std::uint64_t next_data(std::uint64_t offset) const {
        const off_t at = lseek(fd_, static_cast<off_t>(offset), SEEK_DATA);
        return at >= 0 ? static_cast<std::uint64_t>(at) : errno == ENXIO ? size_ : offset;
    }

  private:
    static constexpr const char* kNone =
        ": it is no trace file: it has to be one that FI_DAT_TRACE named";
    const std::string path_;
    int fd_ = -1;
    std::uint64_t size_ = 0;
};

TraceHeader checked_header(const File& file, const std::string& path) {
    TraceHeader header;
    if (file.read(0, &header, sizeof header) != sizeof header) {
        file.is_none();
    }
    if (header.magic != base::kTraceMagic) {
        throw Unusable(path + ": it is no trace file: it does not begin with DATTRACE");
    }
    if (header.version != base::kTraceVersion) {
        throw Unusable(path + ": its layout has version " + std::to_string(header.version) +
                       ", and this program reads version " + std::to_string(base::kTraceVersion));
    }
    constexpr std::uint64_t kMost = std::uint64_t{1} << 32;
    const bool sane = header.header_size == base::kTraceHeaderSize &&
                      header.record_size == sizeof(TraceRecord) &&
                      std::ranges::all_of(header.capacity, [](std::uint64_t capacity) {
                          return capacity > 0 && capacity < kMost;
                      });
    if (!sane || base::trace_file_size(header) > file.size()) {
        throw Unusable(path + ": it is damaged: its header does not fit its " +
                       std::to_string(file.size()) + " bytes");
    }
    if (header.table != core::table_fingerprint()) {
        throw Unusable(path + ": it was written by a provider whose states have other names than "
                              "those that this program knows: use that version's dat_trace");
    }
    header.clock.back() = header.host.back() = header.program.back() = '\0';
    return header;
}

// The records of a ring that are whole, in their order: what two readings, one behind the other,
// find alike, with the stamp of its number.
std::vector<TraceRecord> records_of(const File& file, std::uint64_t at, std::uint64_t capacity,
                                    std::uint64_t written) {
    constexpr std::uint64_t kAtOnce = 1024;
    const std::uint64_t first = written > capacity ? written - capacity : 0;
    std::vector<TraceRecord> out;
    std::vector<TraceRecord> once(kAtOnce);
    std::vector<TraceRecord> again(kAtOnce);
    for (std::uint64_t slot = 0; slot < capacity;) {
        const std::uint64_t next = file.next_data(at + slot * sizeof(TraceRecord));
        slot = std::max(slot, (next - at) / sizeof(TraceRecord));
        const std::uint64_t count = std::min(kAtOnce, capacity - std::min(slot, capacity));
        const std::uint64_t place = at + slot * sizeof(TraceRecord);
        std::size_t there = file.read(place, once.data(), count * sizeof(TraceRecord));
        base::acquire_fence();
        there = file.read(place, again.data(), there) / sizeof(TraceRecord);
        if (there == 0) { // it has been cut off
            break;
        }
        for (std::size_t i = 0; i < there; ++i) {
            const std::uint64_t number = once[i].stamp - 1;
            if (once[i].stamp != 0 && number >= first && number < written &&
                number % capacity == slot + i &&
                std::memcmp(&once[i], &again[i], sizeof(TraceRecord)) == 0) {
                out.push_back(once[i]);
            }
        }
        slot += there;
    }
    std::ranges::sort(out, {}, &TraceRecord::stamp);
    return out;
}

std::vector<TraceRecord> records_of(const File& file, Process& process) {
    std::vector<TraceRecord> out;
    std::uint64_t at = base::kTraceHeaderSize;
    for (std::size_t ring = 0; ring < base::kTraceRings; ++ring) {
        const std::uint64_t capacity = process.header.capacity[ring];
        const std::uint64_t written = process.header.count[ring].written;
        const std::vector<TraceRecord> whole = records_of(file, at, capacity, written);
        out.insert(out.end(), whole.begin(), whole.end());
        process.lost += written - whole.size();
        at += capacity * sizeof(TraceRecord);
    }
    process.records = out.size();
    std::ranges::stable_sort(out, {}, &TraceRecord::time_ns);
    return out;
}

// --- one endpoint -----------------------------------------------------------

class Building {
  public:
    explicit Building(Endpoint& endpoint) : endpoint_(endpoint) {}

    void take(const TraceRecord& record) {
        if (first_ns_ == 0) {
            first_ns_ = record.time_ns;
        }
        switch (record.kind) {
        case TraceKind::opened:
            begin(record.time_ns, record.as<base::TraceOpened>().state, kNone);
            break;
        case TraceKind::transition:
            transition(record.time_ns, record.as<base::TraceTransition>());
            break;
        case TraceKind::peer:
            endpoint_.connections.push_back(
                {record.time_ns, attempt_, record.as<base::TracePeer>(), clock_of(attempt_)});
            break;
        case TraceKind::clock: {
            const auto clock = record.as<base::TraceClock>();
            clocks_[clock.attempt] = clock;
            break;
        }
        case TraceKind::posted:
            posted(record.time_ns, record.as<base::TraceOperation>());
            break;
        case TraceKind::completed:
            completed(record.time_ns, record.as<base::TraceOperation>());
            break;
        case TraceKind::frame_out:
        case TraceKind::frame_in:
            endpoint_.frames.push_back({record.time_ns, record.as<base::TraceFrame>(),
                                        record.kind == TraceKind::frame_out});
            break;
        case TraceKind::note: {
            const auto note = record.as<base::TraceNote>();
            const std::string text(note.text.data(), strnlen(note.text.data(), note.text.size()));
            if (in_note_ && endpoint_.notes.back().first == record.time_ns) {
                endpoint_.notes.back().second += text;
            } else {
                endpoint_.notes.emplace_back(record.time_ns, text);
            }
            in_note_ = text.size() == note.text.size();
            break;
        }
        case TraceKind::none:
            break;
        }
    }

    void finish(std::uint64_t last_ns) {
        end(last_ns, true);
        if (!endpoint_.slices.empty()) { // nothing is outstanding behind its end
            last_ns = endpoint_.slices.back().end_ns;
        }
        for (Operation& operation : endpoint_.operations) {
            if (!operation.done) {
                operation.end_ns = std::max(last_ns, operation.begin_ns);
            }
        }
        std::ranges::stable_sort(endpoint_.operations, {}, &Operation::begin_ns);
        endpoint_.request_lanes = assign_lanes(false);
        endpoint_.receive_lanes = assign_lanes(true);
    }

  private:
    template <class Word> static bool is_one(std::uint8_t number, Word last) {
        return number <= static_cast<std::uint8_t>(last);
    }
    static bool is_state(std::uint8_t state) { return is_one(state, core::State::provider); }
    // What stands in a table of names.
    static bool has_names(const base::TraceTransition& what) {
        return what.stimulus < core::kStimulusCount && is_state(what.from) && is_state(what.to) &&
               is_one(what.verdict, core::Verdict::impossible) &&
               is_one(what.event, core::Event::recorded) &&
               is_one(what.recorded, core::Event::recorded) &&
               is_one(what.flush, core::Flush::posted);
    }

    void begin(std::uint64_t time_ns, std::uint8_t state, std::size_t cause) {
        if (is_state(state)) {
            endpoint_.slices.push_back(
                {time_ns, time_ns, static_cast<core::State>(state), cause, true});
        }
    }
    void end(std::uint64_t time_ns, bool open) {
        if (endpoint_.slices.empty() || !endpoint_.slices.back().open) {
            return;
        }
        Slice& last = endpoint_.slices.back();
        const bool gone = last.state >= core::State::destroyed; // which is a moment
        last.end_ns = gone ? last.begin_ns : std::max(time_ns, last.begin_ns);
        last.open = open && !gone;
    }

    void transition(std::uint64_t time_ns, const base::TraceTransition& what) {
        attempt_ = what.attempt_after;
        if (!has_names(what)) {
            return;
        }
        if (endpoint_.slices.empty()) { // what came before is not there any more
            begin(first_ns_, what.from, kNone);
        }
        endpoint_.transitions.push_back({time_ns, what});
        if (what.from != what.to) {
            end(time_ns, false);
            begin(time_ns, what.to, endpoint_.transitions.size() - 1);
        }
    }

    std::optional<base::TraceClock> clock_of(std::uint32_t attempt) const {
        const auto at = clocks_.find(attempt);
        return at == clocks_.end() ? std::nullopt : std::optional(at->second);
    }

    std::unordered_map<std::uint64_t, std::size_t>& open_of(const base::TraceOperation& what) {
        return what.op == base::TraceOp::receive ? open_receives_ : open_requests_;
    }

    void posted(std::uint64_t time_ns, const base::TraceOperation& what) {
        open_of(what)[what.seq] = endpoint_.operations.size();
        Operation& operation = endpoint_.operations.emplace_back();
        operation.begin_ns = operation.end_ns = time_ns;
        operation.what = what;
    }

    void completed(std::uint64_t time_ns, const base::TraceOperation& what) {
        auto& open = open_of(what);
        const auto at = open.find(what.seq);
        if (at == open.end()) {
            Operation& operation = endpoint_.operations.emplace_back();
            operation.begin_ns = operation.end_ns = time_ns;
            operation.what = what;
            operation.begun = false;
            operation.done = true;
            return;
        }
        Operation* operation = &endpoint_.operations[at->second];
        if (operation->done) { // a receive that serves several messages: the next of them
            Operation next = *operation;
            next.begin_ns = operation->end_ns;
            at->second = endpoint_.operations.size();
            operation = &endpoint_.operations.emplace_back(next);
        }
        operation->end_ns = std::max(time_ns, operation->begin_ns);
        operation->done = true;
        operation->what.status = what.status;
        if (what.op == base::TraceOp::receive) {
            operation->what.length = what.length;
            operation->what.message = what.message;
            operation->what.attempt = what.attempt;
        }
    }

    // Each in the lowest lane that is free as it begins.
    std::size_t assign_lanes(bool receives) {
        using Busy = std::pair<std::uint64_t, std::size_t>; // until when, and which lane
        std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy;
        std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> free;
        std::size_t lanes = 0;
        for (Operation& operation : endpoint_.operations) {
            if (operation.is_receive() != receives) {
                continue;
            }
            for (; !busy.empty() && busy.top().first <= operation.begin_ns; busy.pop()) {
                free.push(busy.top().second);
            }
            if (free.empty()) {
                free.push(lanes++);
            }
            operation.lane = free.top();
            free.pop();
            busy.emplace(operation.end_ns, operation.lane);
        }
        return lanes;
    }

    Endpoint& endpoint_;
    std::uint64_t first_ns_ = 0;
    std::uint32_t attempt_ = 0;
    bool in_note_ = false; // the last note was as long as a record is
    std::map<std::uint32_t, base::TraceClock> clocks_;
    std::unordered_map<std::uint64_t, std::size_t> open_requests_; // by their number
    std::unordered_map<std::uint64_t, std::size_t> open_receives_;
};

Process read_one(const std::string& path) {
    const File file(path);
    Process process;
    process.path = path;
    process.header = checked_header(file, path);
    const std::vector<TraceRecord> records = records_of(file, process);
    std::map<std::uint32_t, std::size_t> index;
    for (const TraceRecord& record : records) {
        if (index.emplace(record.endpoint, 0).second) {
            index[record.endpoint] = index.size() - 1;
        }
    }
    process.endpoints.resize(index.size());
    std::vector<Building> building;
    building.reserve(index.size());
    for (Endpoint& endpoint : process.endpoints) {
        building.emplace_back(endpoint);
    }
    for (const TraceRecord& record : records) {
        const std::size_t i = index[record.endpoint];
        process.endpoints[i].number = record.endpoint;
        building[i].take(record);
    }
    process.last_ns = records.empty() ? process.header.started_ns : records.back().time_ns;
    for (Building& each : building) {
        each.finish(process.last_ns);
    }
    std::ranges::sort(process.endpoints, {}, &Endpoint::number);
    return process;
}

std::int64_t first_of(const Process& process) {
    std::uint64_t first = process.last_ns;
    for (const Endpoint& endpoint : process.endpoints) {
        if (!endpoint.slices.empty()) {
            first = std::min(first, endpoint.slices.front().begin_ns);
        }
        if (!endpoint.operations.empty()) {
            first = std::min(first, endpoint.operations.front().begin_ns);
        }
    }
    return difference(first, static_cast<std::uint64_t>(process.offset_ns));
}

} // namespace

Model read_traces(const std::vector<std::string>& paths) {
    Model model;
    for (const std::string& path : paths) {
        model.processes.push_back(read_one(path));
    }
    join(model);
    model.begin_ns = first_of(model.processes.front());
    for (const Process& process : model.processes) {
        model.begin_ns = std::min(model.begin_ns, first_of(process));
    }
    return model;
}

} // namespace dat::trace
