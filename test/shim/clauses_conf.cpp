// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// dat.conf, and names of adapters.
#include "dat-shim/conf.h"

#include <criterion/criterion.h>
#include <string>
#include <string_view>

using namespace dat::shim;

namespace {

std::vector<ConfEntry> parse(std::string_view text, std::vector<ConfProblem>& problems) {
    return parse_conf(text, [&](const ConfProblem& problem) { problems.push_back(problem); });
}

} // namespace

// REG-1
Test(shim_conf, entries__have_eight_fields) {
    std::vector<ConfProblem> problems;
    const auto entries =
        parse("# nothing\n"
              "\n"
              "ofa-v2-eth0 u2.0 nonthreadsafe default lib.so dapl.2.0 \"eth0 0\" \"\"\n"
              "  a\tu1.2 threadsafe nondefault /x/y z.1 \"q \\\"1\\\" \\\\\" p # more\n"
              "kernel k2.0 nonthreadsafe default lib dapl.2.0 x y\n"
              "last u2.0 nonthreadsafe default lib dapl.2.0 lo",
              problems);
    cr_assert(problems.empty());
    cr_assert_eq(entries.size(), 3u);
    cr_assert_eq(entries[0].name, "ofa-v2-eth0");
    cr_assert_eq(entries[0].major, 2u);
    cr_assert_eq(entries[0].parameters, "eth0 0");
    cr_assert_eq(entries[1].parameters, "q \"1\" \\");
    cr_assert_eq(entries[1].minor, 2u);
    cr_assert(entries[1].thread_safe && !entries[1].is_default);
    cr_assert_eq(entries[2].parameters, "lo");
}

// REG-1
Test(shim_conf, a_bad_line__is_named_and_the_rest_is_used) {
    std::vector<ConfProblem> problems;
    const auto entries = parse("one u2.0 nonthreadsafe default lib dapl.2.0 lo x\n"
                               "two 2.0 nonthreadsafe default lib dapl.2.0 lo x\n"
                               "three u2.0 sometimes default lib dapl.2.0 lo x\n"
                               "four u2.0 nonthreadsafe default\n"
                               "five u2.0 nonthreadsafe default lib dapl.2.0 \"lo x\n"
                               "six u2.0 nonthreadsafe default lib dapl.2.0 lo x y\n"
                               "seven u2.0 nonthreadsafe default lib dapl.2.0 lo x\n",
                               problems);
    cr_assert_eq(entries.size(), 2u);
    cr_assert_eq(entries[1].name, "seven");
    cr_assert_eq(problems.size(), 5u);
    const struct {
        std::size_t line, column;
        const char* expected;
    } wanted[] = {{2, 5, "version"},
                  {3, 12, "threadsafe"},
                  {4, 32, "library"},
                  {5, 46, "closing quote"},
                  {6, 50, "end of the line"}};
    for (std::size_t i = 0; i < problems.size(); ++i) {
        cr_assert_eq(problems[i].line, wanted[i].line);
        cr_assert_eq(problems[i].column, wanted[i].column, "line %zu: column %zu", problems[i].line,
                     problems[i].column);
        cr_assert(problems[i].expected.find(wanted[i].expected) != std::string::npos, "%s",
                  problems[i].expected.c_str());
    }
}

// Some editors begin a file with a byte-order mark.
Test(shim_conf, a_byte_order_mark__is_passed_over) {
    std::vector<ConfProblem> problems;
    const auto entries = parse("\xEF\xBB\xBFone u2.0 nonthreadsafe default lib dapl.2.0 lo x\n"
                               "\xEF\xBB\xBFtwo u2.0 nonthreadsafe default lib dapl.2.0 lo x\n",
                               problems);
    cr_assert(problems.empty());
    cr_assert_eq(entries.size(), 2u);
    cr_assert_eq(entries[0].name, "one");
    cr_assert_eq(entries[1].name, "\xEF\xBB\xBFtwo"); // it is one at the beginning alone
    cr_assert(parse("\xEF\xBB\xBF", problems).empty() && problems.empty());
}

// What is behind it would be lost where a name is a string of C.
Test(shim_conf, a_byte_of_0__makes_its_line_bad) {
    using namespace std::string_view_literals;
    std::vector<ConfProblem> problems;
    const auto entries = parse("on\0e u2.0 nonthreadsafe default lib dapl.2.0 lo x\n"
                               "two u2.0 nonthreadsafe default lib dapl.2.0 lo x\n"
                               "\0\0\0"sv,
                               problems);
    cr_assert_eq(entries.size(), 1u);
    cr_assert_eq(entries[0].name, "two");
    cr_assert_eq(problems.size(), 2u);
    cr_assert_eq(problems[0].line, 1u);
    cr_assert_eq(problems[0].column, 3u);
    cr_assert_eq(problems[1].line, 3u);
}

// However long a line is, it takes as long as it is.
Test(shim_conf, lines_of_a_mebibyte__are_read_like_others) {
    std::vector<ConfProblem> problems;
    const std::string parameters(std::size_t{1} << 20, 'x');
    const std::string text = "one u2.0 nonthreadsafe default lib dapl.2.0 " + parameters + "\n" +
                             parameters + "\n" + "#" + parameters + "\n" +
                             "two u2.0 nonthreadsafe default lib dapl.2.0 lo";
    const auto entries = parse(text, problems);
    cr_assert_eq(entries.size(), 2u);
    cr_assert_eq(entries[0].parameters.size(), parameters.size());
    cr_assert_eq(entries[1].name, "two");
    cr_assert_eq(problems.size(), 1u);
    cr_assert_eq(problems[0].line, 2u);
}
