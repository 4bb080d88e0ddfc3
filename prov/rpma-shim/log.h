// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The log of the library: what rpma_log_*() of a program decide, for its own lines and for those
// of the provider.
#ifndef DAT_RPMA_LOG_H
#define DAT_RPMA_LOG_H

#include <librpma.h>

#include <atomic>

namespace dat::rpma {

// What a program has set, for the entry points alone.
extern std::atomic<rpma_log_function*> g_log_function;
extern std::atomic<rpma_log_level> g_log_thresholds[RPMA_LOG_THRESHOLD_MAX];

inline bool is_logged(rpma_log_level level) {
    return level <= g_log_thresholds[RPMA_LOG_THRESHOLD].load(std::memory_order_relaxed);
}

// Where a line comes from.
struct Origin {
    const char* file;
    int line;
    const char* function;
};

// One line, without a line feed at its end. Any thread; throws nothing.
void say(const Origin& origin, rpma_log_level level, const char* format, ...)
    __attribute__((cold, format(printf, 3, 4)));
// The same at the level of an error; returns `code`.
int fail(const Origin& origin, int code, const char* format, ...)
    __attribute__((cold, format(printf, 3, 4)));

} // namespace dat::rpma

#define RPMA_HERE                                                                                  \
    ::dat::rpma::Origin { __FILE__, __LINE__, __func__ }
#define RPMA_SAY(level, ...)                                                                       \
    do {                                                                                           \
        if (::dat::rpma::is_logged(level)) {                                                       \
            ::dat::rpma::say(RPMA_HERE, level, __VA_ARGS__);                                       \
        }                                                                                          \
    } while (false)
// The value of a function that fails.
#define RPMA_FAIL(code, ...) ::dat::rpma::fail(RPMA_HERE, code, __VA_ARGS__)
#define RPMA_REFUSE(...) RPMA_FAIL(RPMA_E_INVAL, __VA_ARGS__)

#endif
