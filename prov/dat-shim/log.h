// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Where the log lines of the provider go, which each library decides for itself: it defines these
// two.
#ifndef DAT_SHIM_LOG_H
#define DAT_SHIM_LOG_H

#include <rdma/providers/fi_log.h>

namespace dat::shim {

bool is_logged(fi_log_level level);
// `text` ends with a line feed. No point of cancellation. Any thread.
void log_line(fi_log_level level, const char* function, int line, const char* text);

} // namespace dat::shim

#endif
