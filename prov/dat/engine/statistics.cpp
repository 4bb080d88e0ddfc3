// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See statistics.h.
#include "engine/statistics.h"

#include "engine/endpoint.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string_view>

namespace dat::engine {

namespace {

// So many connections are asked about in the kernel for each sheet.
constexpr std::uint64_t kAskedAtOnce = 64;

template <class Time> std::uint64_t nanoseconds(Time time) {
    const auto since = time.time_since_epoch();
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

const char* word(LinkKind kind) {
    switch (kind) {
    case LinkKind::iwarp:
        return "tcp";
    case LinkKind::shm:
        return "shm";
    case LinkKind::verbs:
        return "verbs";
    case LinkKind::in_process:
        break;
    }
    return "other";
}

void set_names(const Endpoint& endpoint, page::Text<64>& local, page::Text<64>& peer) {
    EndpointNames names;
    endpoint.owner().tell(names);
    page::set_text(local, names.local.data());
    page::set_text(peer, names.peer.data());
}

// The numbers of the clauses that the table names for a stimulus, without the words behind them.
void set_clauses(page::Text<96>& to, std::string_view clauses) {
    std::size_t length = 0;
    for (std::size_t at = 0; at < clauses.size();) {
        const std::size_t end = std::min(clauses.find_first_of(" ;", at), clauses.size());
        const std::string_view word = clauses.substr(at, end - at);
        const bool numbered = word.find_first_of("0123456789") != word.npos;
        if (word.empty() || word[0] < 'A' || word[0] > 'Z' || !numbered) {
            break;
        }
        length = end;
        at = end < clauses.size() && clauses[end] == ' ' ? end + 1 : clauses.size();
    }
    page::set_text(to.data(), std::min(length + 1, to.size()), clauses.data());
}

// `ask`: the kernel, too.
page::Row row_of(Endpoint& endpoint, bool ask) {
    page::Row row{};
    const core::DtoStream& requests = endpoint.core().requests();
    const core::DtoStream& receives = endpoint.core().receives();
    Tally& tally = endpoint.tally();
    row.endpoint = tally.number;
    row.requests = requests.first();
    row.request_bytes = tally.request_bytes;
    row.receives = receives.first();
    row.receive_bytes = tally.receive_bytes;
    row.not_ready = tally.not_ready;
    row.requests_outstanding = requests.outstanding();
    row.receives_outstanding = receives.outstanding();
    row.waits_for_receive = endpoint.starved() ? 1 : 0;
    row.retransmissions = row.rtt_us = page::kNone;
    page::set_text(row.state, core::name(endpoint.core().visible_state()).data());
    set_names(endpoint, row.local, row.peer);
    if (const Link* const link = endpoint.link()) {
        row.established_ns = nanoseconds(tally.established);
        page::set_text(row.link, word(link->kind()));
        page::set_text(row.why, link->why());
        if (ask) {
            link->describe(tally.facts);
        }
        row.retransmissions = tally.facts.retransmissions;
        row.rtt_us = tally.facts.rtt_us;
    }
    return row;
}

} // namespace

Statistics::Statistics()
    : kept_owner_(std::make_unique_for_overwrite<std::array<page::End, page::kEnds>>()),
      kept_(*kept_owner_) {}

Statistics::~Statistics() = default;

void Statistics::join(Endpoint& endpoint) {
    if (!endpoints_.holds(endpoint)) {
        endpoint.tally().number = ++endpoints_made_;
        endpoints_.push(endpoint);
    }
}

void Statistics::leave(Endpoint& endpoint) {
    if (endpoints_.holds(endpoint)) {
        add(gone_, endpoint);
        endpoints_.remove(endpoint);
    }
}

void Statistics::add(page::Totals& totals, const Endpoint& endpoint) const {
    const Tally& tally = endpoint.tally();
    totals.requests += endpoint.core().requests().first();
    totals.request_bytes += tally.request_bytes;
    totals.receives += endpoint.core().receives().first();
    totals.receive_bytes += tally.receive_bytes;
    totals.not_ready += tally.not_ready;
}

page::Totals Statistics::totals() const {
    page::Totals totals = gone_;
    totals.written_ns = nanoseconds(Clock::now());
    totals.established = established_;
    // A list walks itself without changing anything.
    const_cast<base::List<Endpoint, Counted>&>(endpoints_).each([&](const Endpoint& endpoint) {
        add(totals, endpoint);
        ++totals.endpoints;
        totals.connected += endpoint.link() ? 1 : 0;
        totals.requests_outstanding += endpoint.core().requests().outstanding();
        totals.receives_outstanding += endpoint.core().receives().outstanding();
    });
    totals.rows = totals.endpoints < page::kRows ? totals.endpoints : page::kRows;
    return totals;
}

void Statistics::ended(const Endpoint& endpoint, core::State from, core::Stimulus stimulus,
                       core::Event event, core::Reason reason, const Carried& carried) {
    page::End& end = kept_[ends_ % page::kEnds];
    const Tally& tally = endpoint.tally();
    end = {};
    end.number = ends_;
    end.when_ns = nanoseconds(std::chrono::system_clock::now());
    end.endpoint = tally.number;
    end.lived_ns = page::kNone;
    end.reason = static_cast<std::uint32_t>(reason);
    page::set_text(end.state, core::name(from).data());
    page::set_text(end.link, "none");
    if (tally.kind) {
        end.lived_ns = nanoseconds(Clock::now()) - nanoseconds(tally.established);
        end.requests = carried.requests - tally.requests_before;
        end.request_bytes = tally.request_bytes - tally.request_bytes_before;
        end.receives = carried.receives - tally.receives_before;
        end.receive_bytes = tally.receive_bytes - tally.receive_bytes_before;
        page::set_text(end.link, word(*tally.kind));
    }
    set_names(endpoint, end.local, end.peer);
    page::set_text(end.event, core::name(event).data());
    page::set_text(end.stimulus, core::name(stimulus).data());
    page::set_text(end.by, core::name(core::stimulus_class(stimulus)).data());
    page::set_text(end.reason_text, endpoint.owner().words_for(reason));
    set_clauses(end.clause, core::clauses(stimulus));
    ++ends_;
    if (end.reason < page::kReasons) {
        ++gone_.ends[end.reason];
    }
    if (page_) {
        page::write_end(*page_, end);
    }
}

void Statistics::set_page(page::Page* page) {
    page_ = page;
    for (std::uint64_t i = 0; page && i < kept_ends(); ++i) {
        page::write_end(*page, end(i));
    }
}

void Statistics::write() {
    if (!page_) {
        return;
    }
    page::write_sheet(*page_, [this](page::Sheet& sheet) {
        const page::Totals all = totals();
        const std::uint64_t from = asked_from_ < all.rows ? asked_from_ : 0;
        std::uint64_t i = 0;
        endpoints_.each([&](Endpoint& endpoint) {
            if (i < all.rows) {
                page::copy_in(sheet.rows[i], row_of(endpoint, i - from < kAskedAtOnce));
                ++i;
            }
        });
        asked_from_ = from + kAskedAtOnce;
        page::copy_in(sheet.totals, all);
    });
}

} // namespace dat::engine
