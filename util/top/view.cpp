// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See view.h.
#include "view.h"

#include "command/json.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <fmt/format.h>
#include <optional>
#include <rdma/fabric.h>
#include <rdma/fi_ext_dat.h>
#include <string_view>
#include <utility>
#include <vector>

namespace dat::top {
namespace {

using command::Colour;
using command::cut;
using command::Json;
using engine::page::End;
using engine::page::kNone;
using engine::page::Row;
using engine::page::Totals;

// As enum fi_dat_reason has it.
std::string reason_word(std::uint32_t reason) {
    switch (static_cast<fi_dat_reason>(reason)) {
    case FI_DAT_REASON_NONE:
        return "none";
    case FI_DAT_REASON_LOCAL:
        return "local";
    case FI_DAT_REASON_PEER_CLOSED:
        return "peer_closed";
    case FI_DAT_REASON_PEER_RESET:
        return "peer_reset";
    case FI_DAT_REASON_END_IN_FRAME:
        return "end_in_frame";
    case FI_DAT_REASON_PROTOCOL:
        return "protocol";
    case FI_DAT_REASON_TERMINATE:
        return "terminate";
    case FI_DAT_REASON_DTO_ERROR:
        return "dto_error";
    case FI_DAT_REASON_KEEPALIVE:
        return "keepalive";
    case FI_DAT_REASON_RNR_TIMEOUT:
        return "rnr_timeout";
    case FI_DAT_REASON_HANDSHAKE_LIMIT:
        return "handshake_limit";
    case FI_DAT_REASON_REFUSED:
        return "refused";
    case FI_DAT_REASON_UNREACHABLE:
        return "unreachable";
    case FI_DAT_REASON_TIMEOUT:
        return "timeout";
    case FI_DAT_REASON_REJECTED:
        return "rejected";
    case FI_DAT_REASON_RESOURCES:
        return "resources";
    case FI_DAT_REASON_WATERMARK:
        return "watermark";
    }
    return fmt::format("reason_{}", reason);
}

// Who ended it, by the class of the stimulus; a graceful disconnect ends by itself, later.
std::string who(const End& end) {
    const std::string by = clean(end.by);
    return by == "api" || end.reason == FI_DAT_REASON_LOCAL ? "this program"
           : by == "wire"                                   ? "the peer, or the way there"
           : by == "timer"                                  ? "a limit of time"
                                                            : "this side";
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

std::string utc(std::uint64_t ns) {
    const auto seconds = static_cast<std::time_t>(ns / 1'000'000'000);
    std::tm time{};
    gmtime_r(&seconds, &time);
    std::array<char, 32> text{};
    std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &time);
    return fmt::format("{}.{:03}Z", text.data(), ns / 1'000'000 % 1000);
}

// --- what changed between two looks ---

const Domain* same_in(const Sight* before, const Domain& domain) {
    if (!before || !domain.sheet) {
        return nullptr;
    }
    const auto found = std::ranges::find(before->domains, domain.socket, &Domain::socket);
    return found != before->domains.end() && found->sheet ? &*found : nullptr;
}

// Of one count a second; nothing where there are no two sheets.
std::optional<double> rate(std::uint64_t now, std::uint64_t before, const Totals& totals,
                           const Totals& totals_before) {
    if (totals.written_ns <= totals_before.written_ns || now < before) {
        return {};
    }
    return static_cast<double>(now - before) * 1e9 /
           static_cast<double>(totals.written_ns - totals_before.written_ns);
}

template <class Count> struct Rates {
    const Totals& totals;
    const Totals* totals_before;
    const Count& now;
    const Count* before;
    std::optional<double> operator()(std::uint64_t Count::*member) const {
        return before && totals_before ? rate(now.*member, before->*member, totals, *totals_before)
                                       : std::optional<double>();
    }
};

Rates<Totals> rates_of(const Domain& domain, const Domain* before) {
    const Totals* const old = before ? &before->sheet->totals : nullptr;
    return {domain.sheet->totals, old, domain.sheet->totals, old};
}

Rates<Row> rates_of(const Domain& domain, const Domain* before, const Row& row) {
    const Row* old = nullptr;
    if (before) {
        const Row* const begin = before->sheet->rows.data();
        const Row* const end = begin + before->sheet->totals.rows;
        const Row* const found = std::find_if(
            begin, end, [&](const Row& each) { return each.endpoint == row.endpoint; });
        old = found == end ? nullptr : found;
    }
    return {domain.sheet->totals, before ? &before->sheet->totals : nullptr, row, old};
}

std::optional<double> age_of(const Row& row, const Domain& domain) {
    const std::uint64_t written = domain.sheet->totals.written_ns;
    return row.established_ns == 0 || row.established_ns > written
               ? std::optional<double>()
               : static_cast<double>(written - row.established_ns) / 1e9;
}

// --- tables ---

std::string per_second(std::optional<double> value) { return value ? short_number(*value) : "-"; }

struct Line {
    std::vector<std::string> cells;
    Colour colour = Colour::plain;
};

Line line_of(const Domain& domain, const Domain* before, const Row& row) {
    const auto rates = rates_of(domain, before, row);
    const std::string state = clean(row.state);
    const std::optional<double> age = age_of(row, domain);
    std::string not_ready = short_number(static_cast<double>(row.not_ready));
    not_ready += row.waits_for_receive != 0 ? "!" : "";
    const bool retransmits = row.retransmissions != kNone;
    return {{fmt::format("{}", row.endpoint), or_dash(clean(row.peer)), state,
             or_dash(clean(row.link)), age ? short_time(*age) : "-",
             per_second(rates(&Row::requests)), per_second(rates(&Row::request_bytes)),
             per_second(rates(&Row::receives)), per_second(rates(&Row::receive_bytes)),
             fmt::format("{}", row.requests_outstanding), not_ready,
             retransmits ? short_number(static_cast<double>(row.retransmissions)) : "-",
             or_dash(clean(row.why))},
            row.waits_for_receive != 0 ? Colour::yellow
            : state == "CONNECTED"     ? Colour::plain
                                       : Colour::dim};
}

std::string heading(const Domain& domain) {
    return fmt::format("{} {}  {}", domain.process > 0 ? std::to_string(domain.process) : "?",
                       or_dash(domain.command), or_dash(domain.name));
}

std::string domain_text(const Domain& domain, const Domain* before, const Style& style) {
    std::string head = heading(domain);
    if (!domain.answers) {
        return style.paint(
                   Colour::red,
                   cut(head + "  does not answer: nothing moves this domain, or too many look",
                       style.columns)) +
               "\n";
    }
    if (!domain.sheet) {
        return cut(head + "  has written nothing yet", style.columns) + "\n";
    }
    const Totals& totals = domain.sheet->totals;
    const auto rates = rates_of(domain, before);
    head +=
        fmt::format("  {} connected of {}  out {}/s {}B/s  in {}/s {}B/s  ends {}",
                    totals.connected, totals.endpoints, per_second(rates(&Totals::requests)),
                    per_second(rates(&Totals::request_bytes)), per_second(rates(&Totals::receives)),
                    per_second(rates(&Totals::receive_bytes)), [&] {
                        std::uint64_t all = 0;
                        for (const std::uint64_t each : totals.ends) {
                            all += each;
                        }
                        return all;
                    }());
    std::string out = style.paint(Colour::plain, cut(head, style.columns)) + "\n";
    if (domain.stands_still) {
        out +=
            style.paint(Colour::red,
                        cut(fmt::format("  has made no progress for {}: what follows was so then",
                                        short_time(domain.age_s)),
                            style.columns)) +
            "\n";
    }
    if (totals.rows > 0) {
        command::Table table({0, 4, 5, 6, 7, 8, 9, 10, 11});
        table.add({"EP", "PEER", "STATE", "LINK", "AGE", "OUT/s", "B/s", "IN/s", "B/s", "OUTST",
                   "NOTRDY", "RETRANS", "WHY THIS LINK"},
                  Colour::dim);
        for (std::size_t i = 0; i < totals.rows; ++i) {
            Line line = line_of(domain, before, domain.sheet->rows[i]);
            table.add(std::move(line.cells), line.colour);
        }
        out += table.text("  ", &style.paint, style.columns);
    }
    if (totals.endpoints > totals.rows) {
        out += fmt::format("  and {} more\n", totals.endpoints - totals.rows);
    }
    return out;
}

// --- JSON ---

Json number_or_null(std::uint64_t value) { return value == kNone ? Json() : Json(value); }
Json number_or_null(std::optional<double> value) { return value ? Json(*value) : Json(); }
Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

template <class Count> Json counts(const Count& count, const Rates<Count>& rates) {
    return {{"requests", count.requests},
            {"request_bytes", count.request_bytes},
            {"receives", count.receives},
            {"receive_bytes", count.receive_bytes},
            {"not_ready", count.not_ready},
            {"per_second",
             {{"requests", number_or_null(rates(&Count::requests))},
              {"request_bytes", number_or_null(rates(&Count::request_bytes))},
              {"receives", number_or_null(rates(&Count::receives))},
              {"receive_bytes", number_or_null(rates(&Count::receive_bytes))}}}};
}

Json json_of(const Domain& domain, const Domain* before, const Row& row) {
    Json json{{"endpoint", row.endpoint},
              {"local", text_or_null(clean(row.local))},
              {"peer", text_or_null(clean(row.peer))},
              {"state", clean(row.state)},
              {"link", text_or_null(clean(row.link))},
              {"why", text_or_null(clean(row.why))},
              {"age_seconds", number_or_null(age_of(row, domain))},
              {"requests_outstanding", row.requests_outstanding},
              {"receives_outstanding", row.receives_outstanding},
              {"waits_for_receive", row.waits_for_receive != 0},
              {"tcp_retransmissions", number_or_null(row.retransmissions)},
              {"tcp_rtt_us", number_or_null(row.rtt_us)}};
    json.update(counts(row, rates_of(domain, before, row)));
    return json;
}

Json json_of(const End& end) {
    const bool lived = end.lived_ns != kNone;
    return {{"number", end.number},
            {"when", utc(end.when_ns)},
            {"endpoint", end.endpoint},
            {"local", text_or_null(clean(end.local))},
            {"peer", text_or_null(clean(end.peer))},
            {"link", clean(end.link)},
            {"state", clean(end.state)},
            {"lived_seconds", lived ? Json(static_cast<double>(end.lived_ns) / 1e9) : Json()},
            {"by", clean(end.by)},
            {"stimulus", clean(end.stimulus)},
            {"event", clean(end.event)},
            {"reason", reason_word(end.reason)},
            {"reason_text", clean(end.reason_text)},
            {"clause", clean(end.clause)},
            {"requests", end.requests},
            {"request_bytes", end.request_bytes},
            {"receives", end.receives},
            {"receive_bytes", end.receive_bytes}};
}

Json json_of(const Domain& domain, const Domain* before) {
    Json json{{"process", domain.process > 0 ? Json(domain.process) : Json()},
              {"user", domain.user},
              {"command", text_or_null(domain.command)},
              {"answers", domain.answers}};
    if (!domain.answers) {
        return json;
    }
    json["name"] = domain.name;
    json["version"] = domain.version;
    json["opened"] = utc(domain.opened_ns);
    json["ends"] = Json::array();
    for (const End& end : domain.ends) {
        json["ends"].push_back(json_of(end));
    }
    if (!domain.sheet) {
        return json;
    }
    const Totals& totals = domain.sheet->totals;
    json["stands_still"] = domain.stands_still;
    json["sheet_age_seconds"] = domain.age_s;
    Json all = counts(totals, rates_of(domain, before));
    all["endpoints"] = totals.endpoints;
    all["connected"] = totals.connected;
    all["established"] = totals.established;
    all["requests_outstanding"] = totals.requests_outstanding;
    all["receives_outstanding"] = totals.receives_outstanding;
    all["ends"] = Json::object();
    for (std::uint32_t reason = 0; reason < totals.ends.size(); ++reason) {
        if (totals.ends[reason] > 0) {
            all["ends"][reason_word(reason)] = totals.ends[reason];
        }
    }
    json["totals"] = std::move(all);
    json["connections"] = Json::array();
    for (std::size_t i = 0; i < totals.rows; ++i) {
        json["connections"].push_back(json_of(domain, before, domain.sheet->rows[i]));
    }
    return json;
}

} // namespace

std::string short_number(double value) {
    constexpr std::array<const char*, 6> kUnits{"", "k", "M", "G", "T", "P"};
    std::size_t unit = 0;
    while (value >= 999.5 && unit + 1 < kUnits.size()) {
        value /= 1000;
        ++unit;
    }
    const bool whole = unit == 0
                           ? value == static_cast<double>(static_cast<long>(value)) || value >= 100
                           : value >= 99.95;
    return fmt::format("{:.{}f}{}", value, whole ? 0 : 1, kUnits[unit]);
}

std::string short_time(double seconds) {
    if (seconds < 60) {
        return fmt::format("{:.1f}s", seconds);
    }
    const auto whole = static_cast<std::uint64_t>(seconds);
    if (whole < 3600) {
        return fmt::format("{}m{:02}s", whole / 60, whole % 60);
    }
    return whole < 86400 ? fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60)
                         : fmt::format("{}d{:02}h", whole / 86400, whole / 3600 % 24);
}

std::string top_text(const Sight& sight, const Sight* before, const Style& style) {
    std::vector<pid_t> processes;
    std::uint64_t connected = 0;
    for (const Domain& domain : sight.domains) {
        processes.push_back(domain.process);
        connected += domain.sheet ? domain.sheet->totals.connected : 0;
    }
    std::ranges::sort(processes);
    processes.erase(std::unique(processes.begin(), processes.end()), processes.end());
    std::string out = cut(fmt::format("processes {}, domains {}, connected endpoints {}",
                                      processes.size(), sight.domains.size(), connected),
                          style.columns);
    if (sight.of_others > 0) {
        out += fmt::format("; {} domains of other users are not shown", sight.of_others);
    }
    out += "\n";
    for (const Domain& domain : sight.domains) {
        out += "\n" + domain_text(domain, same_in(before, domain), style);
    }
    return out;
}

std::string ends_text(const Sight& sight, const Style& style) {
    std::vector<std::pair<std::uint64_t, Line>> ends;
    for (const Domain& domain : sight.domains) {
        for (const End& end : domain.ends) {
            const bool lived = end.lived_ns != kNone;
            const std::string event = clean(end.event);
            ends.emplace_back(
                end.when_ns,
                Line{{utc(end.when_ns), domain.process > 0 ? std::to_string(domain.process) : "?",
                      or_dash(domain.command), fmt::format("{}", end.endpoint),
                      or_dash(clean(end.peer)), clean(end.link), clean(end.state),
                      lived ? short_time(static_cast<double>(end.lived_ns) / 1e9) : "never", event,
                      who(end),
                      fmt::format("{} ({})", clean(end.reason_text), reason_word(end.reason)),
                      fmt::format("{}: {}", clean(end.stimulus), clean(end.clause))},
                     event == "DISCONNECTED" || event == "-" ? Colour::plain : Colour::red});
        }
    }
    if (ends.empty()) {
        return "no connection has ended in the domains that can be looked at\n";
    }
    std::ranges::stable_sort(ends, {}, [](const auto& each) { return each.first; });
    command::Table table({1, 3, 7});
    table.add({"WHEN", "PID", "COMMAND", "EP", "PEER", "LINK", "STATE", "LIVED", "EVENT",
               "ENDED BY", "REASON", "STIMULUS AND CLAUSES"},
              Colour::dim);
    for (auto& [when, line] : ends) {
        table.add(std::move(line.cells), line.colour);
    }
    return table.text("", &style.paint, style.columns);
}

std::string json_text(const Sight& sight, const Sight* before) {
    Json json = command::json_head("dat_top");
    json["domains_of_other_users"] = sight.of_others;
    json["domains"] = Json::array();
    for (const Domain& domain : sight.domains) {
        json["domains"].push_back(json_of(domain, same_in(before, domain)));
    }
    return command::json_line(json);
}

std::string label(const std::string& value) {
    std::string out = "\"";
    for (const char c : value) {
        out += c == '\\' ? "\\\\" : c == '"' ? "\\\"" : c == '\n' ? "\\n" : std::string(1, c);
    }
    return out + "\"";
}

std::string prometheus_text(const Sight& sight) {
    std::string out;
    const auto family = [&](const char* name, const char* type, const char* help, auto&& each) {
        std::string samples;
        for (std::size_t i = 0; i < sight.domains.size(); ++i) {
            const Domain& domain = sight.domains[i];
            // Domains of one process may have the same name: `index` tells them apart.
            std::size_t index = 0;
            for (std::size_t j = 0; j < i; ++j) {
                index += sight.domains[j].process == domain.process ? 1 : 0;
            }
            const std::string labels =
                fmt::format("pid=\"{}\",command={},domain={},index=\"{}\"", domain.process,
                            label(domain.command), label(domain.name), index);
            each(domain, [&](const std::string& more, double value) {
                samples += fmt::format("{}{{{}{}}} {}\n", name, labels, more, value);
            });
        }
        if (!samples.empty()) {
            out += fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n{3}", name, type, help, samples);
        }
    };
    const auto of_totals = [&](const char* name, const char* type, const char* help,
                               std::uint64_t Totals::*member) {
        family(name, type, help, [&](const Domain& domain, auto&& sample) {
            if (domain.sheet) {
                sample("", static_cast<double>(domain.sheet->totals.*member));
            }
        });
    };
    family("dat_domain_up", "gauge", "1 if the domain gives its counters, 0 if it does not answer.",
           [](const Domain& domain, auto&& sample) { sample("", domain.answers ? 1 : 0); });
    family("dat_domain_info", "gauge", "Version of the provider that has opened the domain.",
           [](const Domain& domain, auto&& sample) {
               if (domain.answers) {
                   sample(",version=" + label(domain.version), 1);
               }
           });
    family("dat_domain_opened_timestamp_seconds", "gauge", "When the domain was opened.",
           [](const Domain& domain, auto&& sample) {
               if (domain.answers) {
                   const auto opened_ms = domain.opened_ns / 1'000'000;
                   sample("", static_cast<double>(opened_ms) / 1e3);
               }
           });
    family("dat_domain_sheet_age_seconds", "gauge",
           "Since when the domain has made no progress, as far as can be seen.",
           [](const Domain& domain, auto&& sample) {
               if (domain.sheet) {
                   sample("", domain.age_s);
               }
           });
    of_totals("dat_endpoints", "gauge", "Endpoints that have connected, or tried to.",
              &Totals::endpoints);
    of_totals("dat_connections", "gauge", "Endpoints that are connected.", &Totals::connected);
    of_totals("dat_connections_established_total", "counter", "Connections that were established.",
              &Totals::established);
    of_totals("dat_requests_total", "counter",
              "Sends, writes, reads and atomics that have completed.", &Totals::requests);
    of_totals("dat_request_bytes_total", "counter", "Bytes of requests that have succeeded.",
              &Totals::request_bytes);
    of_totals("dat_receives_total", "counter", "Receives that have completed.", &Totals::receives);
    of_totals("dat_receive_bytes_total", "counter", "Bytes of messages that were received.",
              &Totals::receive_bytes);
    of_totals("dat_requests_outstanding", "gauge", "Requests that have not completed.",
              &Totals::requests_outstanding);
    of_totals("dat_receives_outstanding", "gauge", "Receives that have not completed.",
              &Totals::receives_outstanding);
    of_totals("dat_receiver_not_ready_total", "counter",
              "How often a message had to wait for a receive.", &Totals::not_ready);
    family("dat_connection_ends_total", "counter",
           "Connections, and attempts, that have ended, by reason.",
           [](const Domain& domain, auto&& sample) {
               for (std::uint32_t i = 0; domain.sheet && i < engine::page::kReasons; ++i) {
                   if (domain.sheet->totals.ends[i] > 0) {
                       sample(",reason=" + label(reason_word(i)),
                              static_cast<double>(domain.sheet->totals.ends[i]));
                   }
               }
           });
    family("dat_tcp_retransmissions", "gauge",
           "Segments that TCP has sent again, of the connections that exist.",
           [](const Domain& domain, auto&& sample) {
               double sum = 0;
               bool any = false;
               for (std::size_t i = 0; domain.sheet && i < domain.sheet->totals.rows; ++i) {
                   const std::uint64_t value = domain.sheet->rows[i].retransmissions;
                   any = any || value != kNone;
                   sum += value != kNone ? static_cast<double>(value) : 0;
               }
               if (any) {
                   sample("", sum);
               }
           });
    return out;
}

} // namespace dat::top
