// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See log.h. May include: std.
#include "base/log.h"

#include <array>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>

namespace dat::base {
namespace {

LogSink g_sink{nullptr, nullptr};

using Clock = std::chrono::steady_clock;

// Lines seen lately; a repetition within kQuiet is only counted.
class Repetitions {
  public:
    // True: write the line, preceded by `note` unless that is empty.
    bool admit(std::string_view line, std::string& note) {
        const auto now = Clock::now();
        const std::lock_guard lock(mutex_);
        for (Seen& seen : recent_) {
            if (seen.line == line) {
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
        std::string line;
        Clock::time_point written;
        unsigned suppressed = 0;
    };
    static void describe(Seen& seen, std::string& note) {
        if (seen.suppressed > 0) {
            note = "(" + std::to_string(seen.suppressed) + " more times: " + seen.line + ")";
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

void log(LogLevel level, LogArea area, const char* format, ...) {
    if (!wants(level, area)) {
        return;
    }
    std::array<char, 512> line;
    va_list args;
    va_start(args, format);
    std::vsnprintf(line.data(), line.size(), format, args);
    va_end(args);
    std::string note;
    if (!repetitions().admit(line.data(), note)) {
        return;
    }
    if (!note.empty()) {
        g_sink.write(level, area, note.c_str());
    }
    g_sink.write(level, area, line.data());
}

} // namespace dat::base
