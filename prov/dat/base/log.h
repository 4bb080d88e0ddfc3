// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The one way to say something to the user from any layer. A line says what was
// wrong with which value and what would be right. The sink is set once, when the
// provider is loaded; without one nothing is written.
#ifndef DAT_BASE_LOG_H
#define DAT_BASE_LOG_H

#include <cstdint>

namespace dat::base {

enum class LogLevel : std::uint8_t { warn, info, debug };

// Where a line belongs; the plugin maps it to libfabric's subsystems.
enum class LogArea : std::uint8_t { core, fabric, domain, ep_ctrl, ep_data, eq, cq, mr };

struct LogSink {
    bool (*enabled)(LogLevel level, LogArea area);
    // `function`, `number`: where in the sources the line is written.
    void (*write)(LogLevel level, LogArea area, const char* function, int number, const char* line);
};

// Not thread-safe: before the first object exists.
void set_log_sink(const LogSink& sink);

// Somebody reads such lines.
bool wants(LogLevel level, LogArea area);

// printf-like, from any thread; takes no memory. A line that repeats one of the last few within a
// second is counted instead of written, and the count is written later. `function` has to last.
void log(LogLevel level, LogArea area, const char* function, int number, const char* format, ...)
    __attribute__((format(printf, 5, 6), cold));

} // namespace dat::base

#define DAT_WARN(area, ...)                                                                        \
    ::dat::base::log(::dat::base::LogLevel::warn, ::dat::base::LogArea::area, __func__, __LINE__,  \
                     __VA_ARGS__)
// Its arguments are evaluated only where the line is wanted.
#define DAT_INFO(area, ...)                                                                        \
    do {                                                                                           \
        if (::dat::base::wants(::dat::base::LogLevel::info, ::dat::base::LogArea::area)) {         \
            ::dat::base::log(::dat::base::LogLevel::info, ::dat::base::LogArea::area, __func__,    \
                             __LINE__, __VA_ARGS__);                                               \
        }                                                                                          \
    } while (false)

#endif
