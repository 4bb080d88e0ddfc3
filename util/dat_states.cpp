// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// dat_states: prints the endpoint state machine, from the table that runs, as
// Markdown (with that of a link), as a manual page, as a picture for Graphviz, or as JSON. Exit
// status: 0, or 2 for bad usage.
#include "command/command.h"
#include "command/json.h"
#include "core/ep_state.h"
#include "engine/link_life.h"
#include "links/verbs/life.h"
#include "state_colours.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace dat::core;
using dat::util::is_dashed;
using dat::util::kUsualColour;
using dat::util::state_colour;

namespace {

std::string_view meaning(State state) {
    switch (state) {
    case State::unconnected:
        return "New or reset. Receives may be posted ahead of the connection.";
    case State::reserved:
        return "Held by a reserved service point (RSP) for the one request it waits for.";
    case State::passive_connection_pending:
        return "The RSP's request has come and waits for the Consumer's answer.";
    case State::tentative_connection_pending:
        return "Made by the provider for a request that waits for the Consumer's answer.";
    case State::active_connection_pending:
        return "Connecting; the peer has not answered yet.";
    case State::completion_pending:
        return "Accepted; the handshake with the requester is not finished.";
    case State::connected:
        return "Data may flow.";
    case State::disconnect_pending:
        return "Disconnecting gracefully: requests are carried out to the end, no new ones are "
               "taken.";
    case State::ending:
        return "The end is decided and its event chosen; what is outstanding is being flushed. "
               "Inside the provider only: Consumers see DISCONNECT_PENDING.";
    case State::disconnected:
        return "Over, or never came about. Only reset and free lead out of it.";
    case State::destroyed:
    case State::provider:
        break;
    }
    return "";
}

std::string_view meaning(Stimulus stimulus) {
    switch (stimulus) {
    case Stimulus::connect:
        return "Asks for a connection.";
    case Stimulus::dup_connect:
        return "Asks for a connection like that of another endpoint.";
    case Stimulus::reserve:
        return "Gives the endpoint to a new RSP.";
    case Stimulus::unreserve:
        return "Frees the RSP that holds the endpoint, or once held it.";
    case Stimulus::accept_own:
        return "Accepts the request that already holds this endpoint.";
    case Stimulus::accept_given:
        return "Accepts a request with this endpoint.";
    case Stimulus::reject:
        return "Rejects the request that holds this endpoint.";
    case Stimulus::handoff:
        return "Hands the request that holds this endpoint to another service point.";
    case Stimulus::disconnect_abrupt:
        return "Ends the connection, or the attempt at one, at once.";
    case Stimulus::disconnect_graceful:
        return "Ends the connection when all requests have been carried out.";
    case Stimulus::reset:
        return "Makes the endpoint ready for another connection.";
    case Stimulus::free:
        return "Destroys the endpoint. No event follows.";
    case Stimulus::ia_close:
        return "Destroys everything that belongs to the interface adapter.";
    case Stimulus::post_request:
        return "Posts a send, RDMA read, RDMA write or bind.";
    case Stimulus::post_recv:
        return "Posts a receive.";
    case Stimulus::peer_accepted:
        return "The peer accepted and the transport is ready.";
    case Stimulus::peer_rejected:
        return "The peer's Consumer rejected the request.";
    case Stimulus::refused:
        return "The request was turned down before any Consumer saw it.";
    case Stimulus::unreachable:
        return "The remote host cannot be reached.";
    case Stimulus::timer_expired:
        return "The Consumer's connect timeout is over.";
    case Stimulus::request_arrived:
        return "A request came to the RSP that holds this endpoint.";
    case Stimulus::handshake_done:
        return "The requester confirmed the accepted connection.";
    case Stimulus::handshake_failed:
        return "The accepted connection did not come about, or not in time.";
    case Stimulus::requester_gone:
        return "The requester gave up, aborted or died.";
    case Stimulus::peer_disconnected:
        return "The peer disconnected, freed its endpoint or died.";
    case Stimulus::broken:
        return "The connection failed: path, protocol or a data transfer.";
    case Stimulus::async_error:
        return "The provider's own end of the connection failed.";
    case Stimulus::drained:
        return "Every request is complete and the peer has confirmed it.";
    case Stimulus::flushed:
        return "Every outstanding operation has completed into its queue.";
    case Stimulus::count_:
        break;
    }
    return "";
}

std::vector<State> states() {
    std::vector<State> out;
    for (std::size_t i = 0; i < kStateCount; ++i) {
        out.push_back(static_cast<State>(i));
    }
    return out;
}

std::vector<Stimulus> stimuli(bool calls) {
    std::vector<Stimulus> out;
    for (std::size_t i = 0; i < kStimulusCount; ++i) {
        const auto stimulus = static_cast<Stimulus>(i);
        if ((stimulus_class(stimulus) == StimulusClass::api) == calls) {
            out.push_back(stimulus);
        }
    }
    return out;
}

// --- a page, in either language ------------------------------------------

using Row = std::vector<std::string>;

class Page {
  public:
    virtual ~Page() = default;
    virtual void title(std::string_view text) = 0;
    virtual void heading(std::string_view text) = 0;
    virtual void paragraph(std::string_view text) = 0;
    virtual void term(std::string_view name, std::string_view text) = 0;
    // The first row is the head. `narrow`: the cells are single words.
    virtual void table(const std::vector<Row>& rows, bool narrow) = 0;
};

class MarkdownPage : public Page {
  public:
    void title(std::string_view text) override {
        std::printf("<!-- SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only -->\n"
                    "<!-- Made by `dat_states --format md` from ep_state.def, link_life.def and "
                    "life.def. -->\n"
                    "# %s\n",
                    text.data());
    }
    void heading(std::string_view text) override { std::printf("\n## %s\n\n", text.data()); }
    void paragraph(std::string_view text) override { std::printf("%s\n\n", text.data()); }
    void term(std::string_view name, std::string_view text) override {
        std::printf("- `%s`: %s\n", name.data(), text.data());
    }
    void table(const std::vector<Row>& rows, bool) override {
        print_row(rows.front());
        print_row(Row(rows.front().size(), "---"));
        for (std::size_t i = 1; i < rows.size(); ++i) {
            print_row(rows[i]);
        }
        std::printf("\n");
    }
    void picture() {
        heading("Picture of an endpoint's states");
        paragraph("![the states and what leads from one to another](states.svg)");
    }

  private:
    static void print_row(const Row& row) {
        for (const std::string& text : row) {
            std::printf("| %s ", text.c_str());
        }
        std::printf("|\n");
    }
};

class ManPage : public Page {
  public:
    void title(std::string_view text) override {
        std::printf("'\\\" t\n"
                    ".\\\" SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only\n"
                    ".\\\" Made by \"dat_states --format man\" from ep_state.def.\n"
                    ".TH DAT_EP_STATES 7 2026-11-21 dat \"dat provider\"\n"
                    ".SH NAME\ndat_ep_states \\- %s\n",
                    lower_first(text).c_str());
    }
    void heading(std::string_view text) override {
        std::string upper(text);
        for (char& c : upper) {
            c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
        }
        std::printf(".SH %s\n", upper.c_str());
        first_ = true;
    }
    void paragraph(std::string_view text) override {
        if (!std::exchange(first_, false)) {
            std::printf(".PP\n");
        }
        sentences(text);
    }
    void term(std::string_view name, std::string_view text) override {
        std::printf(".TP\n.B %s\n", name.data());
        sentences(text);
        first_ = false;
    }
    void table(const std::vector<Row>& rows, bool narrow) override {
        std::printf("%s.TS\ntab(|);\n", first_ ? "" : ".PP\n");
        print_format(rows.front().size(), "lb", narrow);
        std::printf("\n");
        print_format(rows.front().size(), "l", narrow);
        std::printf(".\n");
        for (const Row& row : rows) {
            for (std::size_t i = 0; i < row.size(); ++i) {
                std::printf(i == 0 ? "%s" : "|%s", row[i].c_str());
            }
            std::printf("\n");
        }
        std::printf(".TE\n");
        first_ = false;
    }
    void see_also() { std::printf(".SH SEE ALSO\n.BR dat_states (1),\n.BR fi_dat (7)\n"); }

  private:
    // The digit is the distance to the next column.
    static void print_format(std::size_t columns, const char* others, bool narrow) {
        const char* distance = narrow ? "1" : "2";
        for (std::size_t i = 0; i < columns; ++i) {
            std::printf("%s%s", i == 0 ? "lb" : others, i + 1 < columns ? distance : "");
            std::printf("%s", i + 1 < columns ? " " : "");
        }
    }
    static std::string lower_first(std::string_view text) {
        std::string out(text);
        out[0] = static_cast<char>(out[0] - 'A' + 'a');
        return out;
    }
    // Each sentence begins a line, as manual pages are written, and none is long.
    static void sentences(std::string_view text) {
        std::size_t column = 0;
        for (std::size_t begin = 0; begin < text.size();) {
            const std::size_t stop = std::min(text.find(' ', begin), text.size());
            const std::string_view word = text.substr(begin, stop - begin);
            const bool breaks = column + 1 + word.size() > 78;
            const bool request = word.front() == '\'' || word.front() == '.';
            std::printf("%s%s%.*s",
                        column == 0 ? ""
                        : breaks    ? "\n"
                                    : " ",
                        request ? "\\&" : "", static_cast<int>(word.size()), word.data());
            column = word.back() == '.' ? 0 : (breaks ? 0 : column + 1) + word.size();
            if (column == 0 && stop < text.size()) {
                std::printf("\n");
            }
            begin = stop + 1;
        }
        std::printf("\n");
    }
    bool first_ = true;
};

// --- what stands on the page ----------------------------------------------

std::string short_name(State state) {
    switch (state) {
    case State::destroyed:
        return "gone";
    case State::provider:
        return "back";
    default:
        return std::string(abbreviation(state));
    }
}

std::string call_cell(const Cell& c, State state) {
    switch (c.verdict) {
    case Verdict::go:
        return c.next == state ? "yes" : short_name(c.next);
    case Verdict::noop:
        return "ok";
    case Verdict::flush:
        return "fl";
    case Verdict::refuse:
        return "no";
    case Verdict::ignore:
    case Verdict::impossible:
        break;
    }
    return "-";
}

Row head(std::string first, const std::vector<State>& columns) {
    Row row{std::move(first)};
    for (const State state : columns) {
        row.emplace_back(abbreviation(state));
    }
    return row;
}

std::vector<Row> call_table() {
    std::vector<Row> rows{head("call", states())};
    for (const Stimulus stimulus : stimuli(true)) {
        Row row{std::string(name(stimulus))};
        for (const State state : states()) {
            row.push_back(call_cell(cell(stimulus, state), state));
        }
        rows.push_back(std::move(row));
    }
    return rows;
}

// One row for each different effect; states in which it is the same share it.
// What goes nowhere, raises nothing and flushes nothing has no row.
std::vector<Row> effect_table(std::string first, bool calls) {
    std::vector<Row> rows{{std::move(first), "in", "next", "event", "flushes"}};
    for (const Stimulus stimulus : stimuli(calls)) {
        std::vector<std::pair<Row, const Cell*>> own;
        for (const State state : states()) {
            const Cell& c = cell(stimulus, state);
            if (c.verdict != Verdict::go ||
                (calls && c.event == Event::none && c.flush == Flush::none)) {
                continue;
            }
            if (!own.empty() && *own.back().second == c) {
                own.back().first[1] += " " + std::string(abbreviation(state));
                continue;
            }
            own.push_back(
                {{own.empty() ? std::string(name(stimulus)) : "", std::string(abbreviation(state)),
                  short_name(c.next),
                  c.event == Event::recorded ? "the recorded one" : std::string(name(c.event)),
                  c.flush == Flush::none ? "-" : std::string(name(c.flush))},
                 &c});
        }
        for (auto& [row, c] : own) {
            rows.push_back(std::move(row));
        }
    }
    return rows;
}

void print_terms(Page& page, bool calls) {
    for (const Stimulus stimulus : stimuli(calls)) {
        std::string text(meaning(stimulus));
        if (!calls) {
            text += " Raised by: " + std::string(name(stimulus_class(stimulus))) + ".";
        }
        page.term(name(stimulus), text + " (" + std::string(clauses(stimulus)) + ")");
    }
}

template <class State, class Event>
std::vector<Row> life_table(const dat::engine::LifeTable<State, Event>& table) {
    Row first{"event"};
    for (std::size_t i = 0; i < table[0].size(); ++i) {
        first.emplace_back(name(static_cast<State>(i)));
    }
    std::vector<Row> rows{std::move(first)};
    for (std::size_t i = 0; i < table.size(); ++i) {
        Row row{name(static_cast<Event>(i))};
        for (std::size_t at = 0; at < table[i].size(); ++at) {
            const State next = table[i][at];
            row.emplace_back(next == State::count_            ? "-"
                             : next == static_cast<State>(at) ? "stay"
                                                              : name(next));
        }
        rows.push_back(std::move(row));
    }
    return rows;
}

// For those who work on the provider: a Consumer sees nothing of a link.
void print_links(Page& page) {
    page.heading("The life of a link over TCP or shared memory");
    page.paragraph("From its first byte until its endpoint lets it go. A state: the event leads "
                   "there. stay: it is known already. -: the link does not raise it there.");
#define DAT_LINK_STATE(name, meaning) page.term(#name, meaning);
#include "engine/link_life.def"
    std::printf("\n");
    page.table(life_table<dat::engine::LinkState, dat::engine::LinkEvent>(dat::engine::kLinkTable),
               true);
#define DAT_LINK_ROW(event, meaning, ...) page.term(#event, meaning);
#include "engine/link_life.def"
    page.heading("The life of a link over an RDMA device");
    page.paragraph("From when its queue pair is made until its endpoint lets it go.");
#define DAT_VERBS_STATE(name, meaning) page.term(#name, meaning);
#include "links/verbs/life.def"
    std::printf("\n");
    page.table(life_table<dat::verbs::LinkState, dat::verbs::LinkEvent>(dat::verbs::kLinkTable),
               true);
#define DAT_VERBS_ROW(event, meaning, ...) page.term(#event, meaning);
#include "links/verbs/life.def"
}

void print_page(Page& page) {
    page.title("States of a DAT endpoint");
    page.heading("States");
    page.paragraph("What can happen to an endpoint is a call of its Consumer or a happening: on "
                   "the wire, of a timer, inside the provider. One table says what each does in "
                   "each state, and it is what the provider runs. The names in brackets at the "
                   "end of an entry are the clauses of the DAT semantics that it follows.");
    for (const State state : states()) {
        page.term(abbreviation(state),
                  std::string(name(state)) + ". " + std::string(meaning(state)));
    }
    page.heading("Calls");
    page.table(call_table(), true);
    page.paragraph(
        "A state: the call succeeds and leads there (gone: destroyed; back: the endpoint "
        "goes back to the provider). yes: it succeeds and the state stays. ok: it "
        "succeeds and nothing happens. fl: the operation is accepted and completes at "
        "once as FLUSHED. no: refused, nothing changes. -: cannot come.");
    print_terms(page, true);
    page.heading("What calls flush and raise");
    page.paragraph("recvs: every posted receive completes as FLUSHED; all: every request, too. An "
                   "event that stands beside END is recorded, and raised by flushed: so every "
                   "completion of a connection is in its queue before the event that ends it.");
    page.table(effect_table("call", true), false);
    page.heading("Happenings");
    page.paragraph("In a state that is not named here a happening is ignored. So is, in every "
                   "state, one that belongs to an older attempt than the current one.");
    page.table(effect_table("happening", false), false);
    print_terms(page, false);
}

// --- the picture ------------------------------------------------------------

// Lines of at most `width`, broken at spaces, each ended as Graphviz wants it.
std::string wrapped(std::string_view text, std::size_t width) {
    std::string out, line(" ");
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t stop = std::min(text.find(' ', begin), text.size());
        const std::string word(text.substr(begin, stop - begin));
        if (begin > 0 && line.size() + 1 + word.size() > width) {
            out += line + "\\l";
            line = "   ";
        } else if (begin > 0) {
            line += ' ';
        }
        line += word;
        begin = stop + 1;
    }
    return out + line + "\\l";
}

// The stimuli that lead from `from` to `to`, by the event they bring.
std::string edge_label(State from, State to) {
    std::map<Event, std::string> by_event;
    for (std::size_t i = 0; i < kStimulusCount; ++i) {
        const auto stimulus = static_cast<Stimulus>(i);
        const Cell& c = cell(stimulus, from);
        if (c.verdict == Verdict::go && c.next == to) {
            std::string& list = by_event[c.event];
            list += (list.empty() ? "" : ", ") + std::string(name(stimulus));
        }
    }
    std::string label;
    for (const auto& [event, list] : by_event) {
        const std::string what =
            event == Event::recorded ? "the recorded event" : std::string(name(event));
        label += wrapped(event == Event::none ? list : what + ": " + list, 34);
    }
    return label;
}

void print_dot() {
    std::printf("// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only\n"
                "// Made by `dat_states --format dot` from ep_state.def.\n"
                "digraph dat_ep_states {\n"
                "    graph [rankdir=TB, nodesep=0.9, ranksep=0.7, fontname=\"Helvetica\",\n"
                "           label=\"EVENT: stimuli that bring it. Beside END an event is "
                "recorded; flushed raises it.\\lfree and ia_close, which destroy the endpoint, "
                "are left out.\\l\"];\n"
                "    node [shape=box, style=\"rounded,filled\", fillcolor=\"%s\", "
                "fontname=\"Helvetica\"];\n"
                "    edge [fontname=\"Helvetica\", fontsize=10];\n",
                kUsualColour.data());
    for (const State state : states()) {
        std::string extra;
        if (state_colour(state) != kUsualColour) {
            extra = ", fillcolor=\"" + std::string(state_colour(state)) + "\"";
        }
        if (is_dashed(state)) {
            extra += ", style=\"rounded,filled,dashed\"";
        }
        std::printf("    %s [label=\"%s\\n%s\"%s];\n", abbreviation(state).data(),
                    abbreviation(state).data(), name(state).data(), extra.c_str());
    }
    std::printf("    PROVIDER [label=\"back to the provider\", shape=plaintext, style=\"\"];\n");
    std::vector<State> targets = states();
    targets.push_back(State::provider);
    for (const State from : states()) {
        for (const State to : targets) {
            const std::string label = from == to ? "" : edge_label(from, to);
            if (!label.empty()) {
                std::printf("    %s -> %s [label=\"%s\"];\n", abbreviation(from).data(),
                            to == State::provider ? "PROVIDER" : abbreviation(to).data(),
                            label.c_str());
            }
        }
    }
    std::printf("}\n");
}

// --- for programs --------------------------------------------------------------

const char* word(Verdict verdict) {
    switch (verdict) {
    case Verdict::go:
        return "go";
    case Verdict::noop:
        return "nothing";
    case Verdict::flush:
        return "flush";
    case Verdict::refuse:
        return "refuse";
    case Verdict::ignore:
        return "ignore";
    case Verdict::impossible:
        break;
    }
    return "impossible";
}

// As schema/dat_states.schema.json says.
void print_json() {
    using dat::command::Json;
    Json json = dat::command::json_head("dat_states");
    for (const State state : states()) {
        json["states"].push_back({{"name", name(state)},
                                  {"abbreviation", abbreviation(state)},
                                  {"meaning", meaning(state)}});
    }
    for (std::size_t i = 0; i < kStimulusCount; ++i) {
        const auto stimulus = static_cast<Stimulus>(i);
        Json cells = Json::array();
        for (const State state : states()) {
            const Cell& c = cell(stimulus, state);
            Json one{{"state", abbreviation(state)}, {"verdict", word(c.verdict)}};
            if (c.verdict == Verdict::go) {
                one["next"] = short_name(c.next);
                one["event"] = c.event == Event::recorded ? "recorded" : name(c.event);
                one["flushes"] = name(c.flush);
            }
            cells.push_back(std::move(one));
        }
        json["stimuli"].push_back({{"name", name(stimulus)},
                                   {"class", name(stimulus_class(stimulus))},
                                   {"meaning", meaning(stimulus)},
                                   {"clauses", clauses(stimulus)},
                                   {"cells", cells}});
    }
    std::fputs(dat::command::json_text(json).c_str(), stdout);
}

void print(std::string_view format) {
    if (format == "dot") {
        print_dot();
    } else if (format == "json") {
        print_json();
    } else if (format == "md") {
        MarkdownPage page;
        print_page(page);
        print_links(page);
        page.picture();
    } else {
        ManPage page;
        print_page(page);
        page.see_also();
    }
}

int run(int argc, char** argv) {
    std::string format = "md";
    bool json = false;
    dat::command::Command command("dat_states", "Prints the state machine of a DAT endpoint.");
    command.choice("-f,--format", format, {"md", "man", "dot", "json"},
                   "a page in Markdown, the manual page dat_ep_states(7), a picture for Graphviz "
                   "(dot -Tsvg), or JSON");
    command.flag("--json", json, "the same as --format json");
    if (command.parse(argc, argv)) {
        print(json ? "json" : format);
    }
    return std::fflush(stdout) == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
    return dat::command::run("dat_states", 1, 2, [=] { return run(argc, argv); });
}
