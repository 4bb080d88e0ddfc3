// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See log.h; and the functions rpma_log_*().
#include "rpma-shim/log.h"

#include "dat-shim/log.h"
#include "engine/kernel.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <sys/syscall.h>
#include <syslog.h>
#include <unistd.h>

namespace dat::rpma {
namespace {

constexpr std::size_t kLongestLine = 1024;

struct Level {
    const char* name;
    int severity; // of syslog(3)
};
constexpr Level kLevels[] = {{"*FATAL* ", LOG_CRIT},    {"*ERROR* ", LOG_ERR},
                             {"*WARN*  ", LOG_WARNING}, {"*NOTE*  ", LOG_NOTICE},
                             {"*INFO*  ", LOG_INFO},    {"*DEBUG* ", LOG_DEBUG}};

// "Nov 24 06:20:01.123456"; empty where the clock says nothing.
void write_time(char* text, std::size_t size) {
    timespec now{};
    tm parts{};
    char date[24];
    text[0] = '\0';
    if (clock_gettime(CLOCK_REALTIME, &now) == 0 && localtime_r(&now.tv_sec, &parts) &&
        std::strftime(date, sizeof date, "%b %d %H:%M:%S", &parts) > 0) {
        std::snprintf(text, size, "%s.%06ld", date, now.tv_nsec / 1000);
    }
}

const char* base_name(const char* path) {
    const char* const slash = std::strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// To syslog(3), and up to the auxiliary threshold to the standard error output.
void write_log(rpma_log_level level, const char* file, const int line, const char* function,
               const char* format, ...) {
    if (level < RPMA_LOG_LEVEL_FATAL || level > RPMA_LOG_LEVEL_DEBUG) {
        return;
    }
    char message[kLongestLine];
    va_list args;
    va_start(args, format);
    std::vsnprintf(message, sizeof message, format, args);
    va_end(args);
    char origin[256] = "";
    if (file) {
        std::snprintf(origin, sizeof origin, "%s: %3d: %s: ", base_name(file), line,
                      function ? function : "?");
    }
    const kernel::NoCancel while_writing;
    const Level& as = kLevels[level];
    if (level <= g_log_thresholds[RPMA_LOG_THRESHOLD_AUX].load(std::memory_order_relaxed)) {
        char time[48];
        write_time(time, sizeof time);
        std::fprintf(stderr, "%s [%ld] %s%s%s", time, syscall(SYS_gettid), as.name, origin,
                     message);
    }
    syslog(LOG_LOCAL7 | as.severity, "%s%s%s", as.name, origin, message);
}

void pass_on(const Origin& origin, rpma_log_level level, const char* format, va_list args) {
    char line[kLongestLine];
    std::vsnprintf(line, sizeof line, format, args);
    if (rpma_log_function* const function = g_log_function.load(std::memory_order_relaxed)) {
        function(level, origin.file, origin.line, origin.function, "%s\n", line);
    }
}

rpma_log_level level_of(fi_log_level level) {
    switch (level) {
    case FI_LOG_WARN:
        return RPMA_LOG_LEVEL_WARNING;
    case FI_LOG_INFO:
        return RPMA_LOG_LEVEL_INFO;
    default:
        return RPMA_LOG_LEVEL_DEBUG;
    }
}

} // namespace

constinit std::atomic<rpma_log_function*> g_log_function{write_log};
constinit std::atomic<rpma_log_level> g_log_thresholds[RPMA_LOG_THRESHOLD_MAX]{
    RPMA_LOG_LEVEL_WARNING, RPMA_LOG_DISABLED};

void say(const Origin& origin, rpma_log_level level, const char* format, ...) {
    va_list args;
    va_start(args, format);
    pass_on(origin, level, format, args);
    va_end(args);
}

int fail(const Origin& origin, int code, const char* format, ...) {
    if (is_logged(RPMA_LOG_LEVEL_ERROR)) {
        va_list args;
        va_start(args, format);
        pass_on(origin, RPMA_LOG_LEVEL_ERROR, format, args);
        va_end(args);
    }
    return code;
}

} // namespace dat::rpma

// The lines of the provider.
namespace dat::shim {

bool is_logged(fi_log_level level) { return rpma::is_logged(rpma::level_of(level)); }

void log_line(fi_log_level level, const char* function, int line, const char* text) {
    const int size = static_cast<int>(std::strcspn(text, "\n"));
    rpma::say({"dat", line, function}, rpma::level_of(level), "%.*s", size, text);
}

} // namespace dat::shim

extern "C" {

int rpma_log_set_function(rpma_log_function* log_function) {
    dat::rpma::g_log_function = log_function ? log_function : dat::rpma::write_log;
    return 0;
}

int rpma_log_set_threshold(enum rpma_log_threshold threshold, enum rpma_log_level level) {
    if (threshold != RPMA_LOG_THRESHOLD && threshold != RPMA_LOG_THRESHOLD_AUX) {
        return RPMA_REFUSE("rpma_log_set_threshold(): threshold = %d is neither "
                           "RPMA_LOG_THRESHOLD (0) nor RPMA_LOG_THRESHOLD_AUX (1)",
                           static_cast<int>(threshold));
    }
    if (level < RPMA_LOG_DISABLED || level > RPMA_LOG_LEVEL_DEBUG) {
        return RPMA_REFUSE("rpma_log_set_threshold(): level = %d is not within %d and %d",
                           static_cast<int>(level), RPMA_LOG_DISABLED, RPMA_LOG_LEVEL_DEBUG);
    }
    dat::rpma::g_log_thresholds[threshold] = level;
    return 0;
}

int rpma_log_get_threshold(enum rpma_log_threshold threshold, enum rpma_log_level* level) {
    if ((threshold != RPMA_LOG_THRESHOLD && threshold != RPMA_LOG_THRESHOLD_AUX) || !level) {
        return RPMA_REFUSE("rpma_log_get_threshold(): threshold = %d, level = %p; a threshold of "
                           "0 or 1, and a pointer",
                           static_cast<int>(threshold), static_cast<void*>(level));
    }
    *level = dat::rpma::g_log_thresholds[threshold];
    return 0;
}

} // extern "C"
