// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See log.h.
#include "base/log.h"

#include <array>
#include <chrono>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <mutex>

namespace dat::base {
namespace {

LogSink g_sink{nullptr, nullptr};

using Clock = std::chrono::steady_clock;

// A line is cut to this, so that none of them takes memory.
constexpr std::size_t kLongest = 512; // bytes, with the zero at its end
using Line = std::array<char, kLongest>;

// Lines seen lately; a repetition within kQuiet is only counted.
class Repetitions {
  public:
    // True: write the line, preceded by `note` unless that is empty.
    bool admit(const Line& line, Line& note) {
        const auto now = Clock::now();
        const std::lock_guard lock(mutex_);
        for (Seen& seen : recent_) {
            if (std::strcmp(seen.line.data(), line.data()) == 0) {
                if (now - seen.written < kQuiet) {
                    ++seen.suppressed;
                    return false;
                }
                describe(seen, note);
                seen.written = now;
                return true;
            }
        }
        Seen& seen = recent_[next_++ % recent_.size()];
        describe(seen, note);
        seen.line = line;
        seen.written = now;
        return true;
    }

  private:
    static constexpr auto kQuiet = std::chrono::seconds(1);
    struct Seen {
        Line line{};
        Clock::time_point written;
        unsigned suppressed = 0;
    };
    static void describe(Seen& seen, Line& note) {
        if (seen.suppressed > 0) {
            const int head =
                std::snprintf(note.data(), note.size(), "(%u more times: ", seen.suppressed);
            std::snprintf(note.data() + head, note.size() - static_cast<std::size_t>(head), "%.*s)",
                          static_cast<int>(kLongest) - head - 2, seen.line.data());
            seen.suppressed = 0;
        }
    }
    std::mutex mutex_;
    std::array<Seen, 8> recent_;
    std::size_t next_ = 0;
};

Repetitions& repetitions() {
    static Repetitions instance;
    return instance;
}

} // namespace

void set_log_sink(const LogSink& sink) { g_sink = sink; }

bool wants(LogLevel level, LogArea area) { return g_sink.write && g_sink.enabled(level, area); }

void log(LogLevel level, LogArea area, const char* function, int number, const char* format, ...) {
    if (!wants(level, area)) {
        return;
    }
    Line line;
    va_list args;
    va_start(args, format);
    std::vsnprintf(line.data(), line.size(), format, args);
    va_end(args);
    Line note;
    note[0] = '\0';
    if (!repetitions().admit(line, note)) {
        return;
    }
    if (note[0] != '\0') {
        g_sink.write(level, area, function, number, note.data());
    }
    g_sink.write(level, area, function, number, line.data());
}

} // namespace dat::base
