// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The ways to write a model.
#ifndef DAT_UTIL_TRACE_OUTPUT_H
#define DAT_UTIL_TRACE_OUTPUT_H

#include "trace/model.h"

#include <cstdio>

namespace dat::trace {

// Chrome's trace event format, which Perfetto and chrome://tracing open.
void write_chrome(const Model& model, std::FILE* file);
// One page of HTML with all that it needs in it.
void write_page(const Model& model, std::FILE* file);
// A few lines of text: what is in the files.
void write_summary(const Model& model, std::FILE* file);
// The same, of dat_trace.schema.json.
void write_summary_json(const Model& model, std::FILE* file);

} // namespace dat::trace

#endif
