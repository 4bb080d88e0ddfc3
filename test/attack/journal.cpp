// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See journal.h.
#include "journal.h"

namespace dat::test {

void Journal::posted(Task& task) {
    task.posted = true;
    stream_of(task).outstanding.push_back(&task);
}

void Journal::completed(Task& task, const Op& result) {
    DAT_REQUIRE(task.posted, "an operation completed that was not outstanding");
    Stream& stream = stream_of(task);
    DAT_REQUIRE(stream.outstanding.front() == &task, "a completion out of posting order");
    DAT_REQUIRE(!stream.failed || result.err == FI_ECANCELED,
                "after an error: " + error_name(result.err));
    stream.failed = result.err != 0;
    stream.outstanding.pop_front();
    task.posted = false;
}

void Journal::require_empty(const char* where) const {
    DAT_REQUIRE(requests() == 0 && receives() == 0, std::to_string(requests()) + " requests and " +
                                                        std::to_string(receives()) +
                                                        " receives have not completed " + where);
}

void Journal::begin() {
    require_empty("when the next connection began");
    for (Stream& stream : streams_)
        stream.failed = false;
}

} // namespace dat::test
