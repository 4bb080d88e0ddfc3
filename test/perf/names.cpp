// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What a user may write: sizes, providers, tests; what another host may ask for; and what is said
// of what is missing.
#include "util/perf/foreign.h"
#include "util/perf/measure.h"
#include "util/perf/net.h"
#include "util/perf/remote.h"
#include "util/perf/run_case.h"
#include "util/perf/way.h"

#include <criterion/criterion.h>

using namespace dat::perf;

namespace {

using Sizes = std::vector<std::size_t>;

template <class Parse> bool refused(Parse&& parse) {
    try {
        parse();
    } catch (const Usage& why) {
        return std::string_view(why.what()).find('\n') == std::string_view::npos;
    }
    return false;
}

bool no_sizes(const char* text) {
    return refused([=] { parse_sizes(text); });
}
bool no_ways(const char* text) {
    return refused([=] { parse_ways(text); });
}

} // namespace

Test(perf_names, range__has_both_ends_once) {
    cr_assert(parse_sizes("8:4M") == (Sizes{8, 64, 512, 4096, 32768, 262144, 2097152, 4194304}));
    cr_assert(parse_sizes("8:512") == (Sizes{8, 64, 512}));
    cr_assert(parse_sizes("1:5:2") == (Sizes{1, 2, 4, 5}));
    cr_assert(parse_sizes("64:64") == Sizes{64});
}

Test(perf_names, list_of_sizes__is_sorted_and_each_once) {
    cr_assert(parse_sizes("1M,64,4k,64") == (Sizes{64, 4096, 1048576}));
    cr_assert(parse_sizes("1") == Sizes{1});
}

Test(perf_names, largest_size__is_1G) {
    cr_assert(parse_sizes("1G") == Sizes{std::size_t{1} << 30});
    cr_assert(parse_sizes("1024M") == Sizes{std::size_t{1} << 30});
    cr_assert_eq(parse_sizes("1:1G:1G").size(), 2u);
    cr_assert_eq(parse_sizes("1:1G:2").size(), 31u);
    cr_assert(no_sizes("1073741825"));
    cr_assert(no_sizes("1025M"));
    cr_assert(no_sizes("2G"));
    cr_assert(no_sizes("99999999999999999999"));
    cr_assert(no_sizes("18014398509481985K")); // would be 1K if it wrapped
}

Test(perf_names, what_is_no_size__is_refused) {
    for (const char* text : {"", "0", "x", "8:", ":8", "8:4:2", "8:64:1", "8:64:0", "1:2:3:4", "-8",
                             "8KB", "8,,9", "8 ", "0:8"}) {
        cr_assert(no_sizes(text), "'%s'", text);
    }
}

Test(perf_names, size__is_shown_with_the_largest_unit_that_divides_it) {
    cr_assert_eq(size_text(64), "64 B");
    cr_assert_eq(size_text(1023), "1023 B");
    cr_assert_eq(size_text(1024), "1 KiB");
    cr_assert_eq(size_text(1025), "1025 B");
    cr_assert_eq(size_text(std::size_t{3} << 20), "3 MiB");
}

Test(perf_names, provider__has_an_environment_and_a_type_of_its_own) {
    const std::vector<Way> ways =
        parse_ways("dat,dat@FI_DAT_SHM=0@FI_DAT_CRC=1,tcp;ofi_rxm,sockets@rdm");
    cr_assert_eq(ways.size(), 4u);
    cr_assert(ways[0].environment.empty() && ways[0].endpoint == Endpoint::any);
    cr_assert_eq(ways[1].provider, "dat");
    cr_assert_eq(ways[1].label, "dat@FI_DAT_SHM=0@FI_DAT_CRC=1");
    cr_assert_eq(ways[1].environment.size(), 2u);
    cr_assert_eq(ways[1].environment[0].first, "FI_DAT_SHM");
    cr_assert_eq(ways[1].environment[0].second, "0");
    cr_assert_eq(ways[2].provider, "tcp;ofi_rxm");
    cr_assert(ways[3].endpoint == Endpoint::rdm);
}

Test(perf_names, value_of_a_variable__may_be_empty_and_hold_an_equals_sign) {
    const std::vector<Way> ways = parse_ways("dat@A=@B=c=d");
    cr_assert_eq(ways[0].environment[0].second, "");
    cr_assert_eq(ways[0].environment[1].second, "c=d");
}

Test(perf_names, what_is_no_provider__is_refused) {
    for (const char* text : {"", "dat,", ",dat", "dat@", "dat@x", "dat@=1", "@A=1", "dat,dat"}) {
        cr_assert(no_ways(text), "'%s'", text);
    }
}

Test(perf_names, test__stands_for_its_measures) {
    const auto wanted = parse_tests("rma,latency,rma");
    cr_assert_eq(wanted.size(), 4u);
    cr_assert_str_eq(wanted[0]->name, "latency");
    cr_assert_str_eq(wanted[1]->name, "rma-write");
    for (const char* text : {"", "latency,", "rma-write", "memcpy"}) {
        cr_assert(refused([=] { parse_tests(text); }), "'%s'", text);
    }
}

Test(perf_names, every_measure__says_how_completions_were_seen) {
    for (const Measure& measure : measures()) {
        const bool polled = conditions(measure, false).find("polled for (fi_") != std::string::npos;
        cr_assert(polled, "%s", measure.name);
    }
    cr_assert(conditions(measures()[0], true).find("fi_cq_sread") != std::string::npos);
    cr_assert(conditions(measures()[0], false).find("preposted") != std::string::npos);
}

Test(perf_names, missing_provider__is_named_with_those_that_are_here) {
    const std::string unknown = missing_text(parse_ways("verbs")[0], {"shm", "tcp"}, "no reason");
    cr_assert_eq(unknown, "provider 'verbs' is not here; libfabric has: shm tcp");
    const std::string known = missing_text(parse_ways("tcp@msg")[0], {"shm", "tcp"}, "it sleeps");
    cr_assert_eq(known, "provider 'tcp' is there, but it sleeps");
}

Test(perf_names, provider_of_no_libfabric__is_missing_with_a_list) {
    std::string version;
    const auto lines = missing(parse_ways("no_such_provider"), "127.0.0.1", version);
    cr_assert_eq(lines.size(), 1u);
    cr_assert(lines[0].find("provider 'no_such_provider' is not here; libfabric has:") == 0, "%s",
              lines[0].c_str());
}

Test(perf_names, host__may_have_a_port) {
    using Both = std::pair<std::string, std::string>;
    cr_assert(host_and_port("far", "1") == (Both{"far", "1"}));
    cr_assert(host_and_port("far:77", "1") == (Both{"far", "77"}));
    cr_assert(host_and_port("fe80::1%eth0", "1") == (Both{"fe80::1%eth0", "1"}));
    cr_assert(host_and_port("[::1]:77", "1") == (Both{"::1", "77"}));
    cr_assert(host_and_port("[::1]", "1") == (Both{"::1", "1"}));
}

Test(perf_names, what_is_measured_beside__is_known_by_name) {
    const std::vector<Way> ways = parse_foreign("ucx@UCX_TLS=tcp,openmpi");
    cr_assert(ways.at(0).kind == Kind::ucx && ways.at(1).kind == Kind::mpi);
    cr_assert_eq(ways[0].environment.at(0).second, "tcp");
    cr_assert(refused([] { parse_foreign("mpich"); }));
}

namespace {

bool refused_from_afar(const std::string& text) {
    try {
        case_of(text);
    } catch (const Failure&) {
        return true;
    }
    return false;
}

} // namespace

Test(perf_remote, case__arrives_as_it_was_sent) {
    Case what;
    what.way = parse_ways("dat@FI_DAT_SHM=0@msg").at(0);
    what.pattern = Pattern::incast;
    what.size = 4096;
    what.amount = {17, 0.25};
    what.waits = true;
    what.connections = 3;
    what.senders = 5;
    const Case there = case_of(text_of(what));
    cr_assert_eq(text_of(there), text_of(what));
    cr_assert_eq(there.way.label, "dat@FI_DAT_SHM=0@msg");
    cr_assert(there.way.endpoint == Endpoint::msg && there.pattern == Pattern::incast);
    cr_assert(there.way.environment == what.way.environment && there.waits);
    cr_assert_eq(link_count(there), 5u);
}

// What would have this host load or write files, or work for hours.
Test(perf_remote, what_another_host_may_not_ask_for__is_refused) {
    for (const char* text :
         {"set LD_PRELOAD=/tmp/x.so", "set FI_PROVIDER_PATH=/tmp", "set FI_DAT_TRACE=/etc/x",
          "set PATH=/tmp", "set FI_X", "size 0", "size 1073741825", "size x", "size -1",
          "pattern 99", "kind -1", "connections 1000000", "microseconds 99999999999", "word 1",
          "pairs 5000", "pairs 1000\nthreads 1000", "kind 2", "kind 4", "pattern 12"}) {
        cr_assert(refused_from_afar(text), "%s", text);
    }
    cr_assert_not(refused_from_afar("set FI_DAT_SHM=0\nset UCX_TLS=tcp"));
}
