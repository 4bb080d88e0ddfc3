// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See reason.h.
#include "dat-shim/reason.h"

#include "base/log.h"
#include "dat-shim/provider.h"

#include <rdma/providers/fi_log.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace dat::shim {
namespace {

// The first call of a program may be one that is refused.
bool is_read() { return fi_log_enabled(nullptr, FI_LOG_WARN, FI_LOG_CORE) && load(); }

// A pointer, since storage of a thread's own that is large may have to be allocated, where a
// process that has no memory is ended. From because() to the line.
[[gnu::tls_model("initial-exec")]] constinit thread_local char* t_reason = nullptr;

} // namespace

Return because(Return code, const char* format, ...) {
    if (is_read()) {
        std::free(t_reason);
        va_list args;
        va_start(args, format);
        if (vasprintf(&t_reason, format, args) < 0) {
            t_reason = nullptr;
        }
        va_end(args);
    }
    return code;
}

void say_refused(const char* call, const char* type, const char* subtype) {
    if (is_read()) {
        DAT_WARN(core, "%s(): %s%s%s%s%s", call, type, *subtype ? ", " : "", subtype,
                 t_reason ? ": " : "", t_reason ? t_reason : "");
        std::free(t_reason);
        t_reason = nullptr;
    }
}

} // namespace dat::shim
