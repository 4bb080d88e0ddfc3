// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See link.h.
#include "engine/link.h"

#include "base/attempt.h"

#include <cstring>

namespace dat::engine {

bool Link::give(const core::CompletionQueue&, core::Success&) noexcept { return false; }

void Link::say_why(const char* text) noexcept {
    const std::size_t size = std::strlen(text) + 1;
    (void)base::attempt([&] { why_ = std::make_unique<char[]>(size); });
    if (why_) {
        std::memcpy(why_.get(), text, size);
    }
}

} // namespace dat::engine
