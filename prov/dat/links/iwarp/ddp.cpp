// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// DDP: words for log lines.
#include "links/iwarp/ddp.h"

namespace dat::iwarp {

const char* text(DdpError error) {
    switch (error) {
    case DdpError::none:
        return "no error";
    case DdpError::too_short:
        return "the segment is shorter than a DDP header";
    case DdpError::tagged_version:
        return "a tagged segment has another DDP version than 1";
    case DdpError::untagged_version:
        return "an untagged segment has another DDP version than 1";
    }
    return "unknown DDP error";
}

} // namespace dat::iwarp
