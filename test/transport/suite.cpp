// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What joins the fixture to Criterion.
#include "suite.h"

#include "applicable.h"

#include <cstdlib>

namespace dat::test {

namespace {

const Transport* running = nullptr;

// Tests wait more than they compute: more of them at once than processors.
__attribute__((constructor)) void choose_jobs() { setenv("CRITERION_JOBS", "8", 0); }

} // namespace

void fail(const char* file, int line, const std::string& message) {
    const char* over = running ? running->name : "";
    cr_assert_fail("%s:%d: over %s: %s", file, line, over, message.c_str());
    __builtin_unreachable();
}

void run_test(Over over, const char* name, void (*test)(const Transport&)) {
    static struct {
        Over over;
        const char* name;
        void (*test)(const Transport&);
        const char* missing = "DAT_TRANSPORT names none of its transports";
        bool ran = false;
    } one;
    one.over = over;
    one.name = name;
    one.test = test;
    run_over(over == Over::shm, [](const Transport& transport) {
        running = &transport;
        const bool of_devices = transport.device || transport.partner;
        const char* why_not = of_devices && one.over == Over::wire
                                  ? "it is about the bytes of the software domain on TCP"
                                  : not_applicable(transport.name, one.name);
        if (why_not) {
            one.missing = why_not;
        } else {
            one.test(transport);
            one.ran = true;
        }
    });
    if (!one.ran)
        cr_skip_test("%s", one.missing);
}

void only_dat() {
    if (!is_dat())
        cr_skip_test("tests what only the dat provider offers");
}

} // namespace dat::test
