// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See output.h: the page. Its HTML and script are page.html; here is what they show: a few things
// as JSON, and the operations and frames as columns of numbers, since there may be a million.
#include "state_colours.h"
#include "trace/json.h"
#include "trace/output.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>

namespace dat::trace {
namespace {

constexpr std::string_view kPage =
#include "trace/page.inc"
    ;
constexpr std::string_view kDataMark = "@DATA@";
constexpr std::string_view kColumnsMark = "@COLUMNS@";

// Numbers one behind the other, as base64.
class Columns {
  public:
    template <class Number> void add(Number number) {
        static_assert(std::is_arithmetic_v<Number>);
        const char* const at = reinterpret_cast<const char*>(&number);
        bytes_.append(at, sizeof number);
    }
    void write(std::FILE* file) const {
        constexpr std::string_view kDigits =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        std::string out;
        for (std::size_t i = 0; i < bytes_.size(); i += 3) {
            std::array<unsigned char, 3> three{};
            const std::size_t n = std::min<std::size_t>(3, bytes_.size() - i);
            std::memcpy(three.data(), bytes_.data() + i, n);
            const unsigned all = (three[0] * 65536u) + (three[1] * 256u) + three[2];
            for (std::size_t k = 0; k < 4; ++k) {
                out += k <= n ? kDigits[(all >> (18 - 6 * k)) & 63] : '=';
            }
            if (out.size() >= 65536) {
                std::fwrite(out.data(), 1, out.size(), file);
                out.clear();
            }
        }
        std::fwrite(out.data(), 1, out.size(), file);
    }

  private:
    std::string bytes_;
};

// An operation or a frame, as the page draws it.
struct Item {
    double begin = 0;
    double duration = 0;
    double length = 0;
    std::uint32_t what = 0; // kinds() index, status, flags
    std::uint32_t number = 0;
    std::uint64_t context = 0;
    std::int32_t partner = -1;
};
constexpr std::uint32_t kStatusShift = 8, kOpenBit = 1u << 16, kFrameBit = 1u << 17,
                        kSilentBit = 1u << 18, kInBit = 1u << 19, kUnbegunBit = 1u << 20;

class Page {
  public:
    Page(const Model& model, std::FILE* file) : model_(model), file_(file), json_(file) {}

    void write() {
        const std::size_t data = kPage.find(kDataMark);
        const std::size_t columns = kPage.find(kColumnsMark);
        put(kPage.substr(0, data));
        write_data();
        const std::size_t behind = data + kDataMark.size();
        put(kPage.substr(behind, columns - behind));
        write_columns();
        put(kPage.substr(columns + kColumnsMark.size()));
    }

  private:
    void put(std::string_view text) { std::fwrite(text.data(), 1, text.size(), file_); }

    void write_data() {
        json_.open('{');
        write_words();
        write_table();
        json_.open("processes", '[');
        for (const Process& process : model_.processes) {
            json_.open('{');
            json_.text("name", process.name());
            json_.text("path", process.path);
            json_.text("clock", alignment_text(process));
            json_.number("lost", process.lost);
            json_.number("records", process.records);
            json_.close('}');
        }
        json_.close(']');
        write_rows();
        json_.number("items", items_.size());
        json_.open("kinds", '[');
        for (const std::string& kind : kinds_) {
            json_.element(kind);
        }
        json_.close(']');
        json_.close('}');
    }

    void write_words() {
        json_.open("states", '[');
        for (std::size_t s = 0; s < core::kStateCount + 2; ++s) {
            const auto state = static_cast<core::State>(s);
            json_.open('{');
            json_.text("name", core::name(state));
            json_.text("short", core::abbreviation(state));
            json_.text("colour", util::state_colour(state));
            json_.boolean("dashed", util::is_dashed(state));
            json_.close('}');
        }
        json_.close(']');
        words("verdicts", core::Verdict::impossible);
        words("events", core::Event::recorded);
        words("flushes", core::Flush::posted);
        json_.open("reasons", '[');
        for (int i = 0; i <= static_cast<int>(core::Reason::watermark); ++i) {
            json_.element(trace::name(static_cast<core::Reason>(i)));
        }
        json_.close(']');
        json_.open("statuses", '[');
        for (int i = 0; i <= static_cast<int>(core::DtoStatus::rmr_operation_failed); ++i) {
            json_.element(trace::name(static_cast<core::DtoStatus>(i)));
        }
        json_.close(']');
    }

    template <class Word> void words(std::string_view key, Word last) {
        json_.open(key, '[');
        for (int i = 0; i <= static_cast<int>(last); ++i) {
            json_.element(core::name(static_cast<Word>(i)));
        }
        json_.close(']');
    }

    // The state table itself: of each cell verdict, next state, event, flush.
    void write_table() {
        json_.open("table", '[');
        for (std::size_t i = 0; i < core::kStimulusCount; ++i) {
            const auto stimulus = static_cast<core::Stimulus>(i);
            json_.open('{');
            json_.text("name", core::name(stimulus));
            json_.text("class", core::name(core::stimulus_class(stimulus)));
            json_.text("clauses", core::clauses(stimulus));
            json_.open("cells", '[');
            for (std::size_t s = 0; s < core::kStateCount; ++s) {
                const core::Cell& cell = core::cell(stimulus, static_cast<core::State>(s));
                json_.open('[');
                json_.element(static_cast<std::uint64_t>(cell.verdict));
                json_.element(static_cast<std::uint64_t>(cell.next));
                json_.element(static_cast<std::uint64_t>(cell.event));
                json_.element(static_cast<std::uint64_t>(cell.flush));
                json_.close(']');
            }
            json_.close(']');
            json_.close('}');
        }
        json_.close(']');
    }

    void write_rows() {
        number_operations();
        json_.open("rows", '[');
        for (std::size_t p = 0; p < model_.processes.size(); ++p) {
            const Process& process = model_.processes[p];
            for (std::size_t e = 0; e < process.endpoints.size(); ++e) {
                write_states(p, process, process.endpoints[e]);
                write_operations(p, e, false);
                write_operations(p, e, true);
                write_frames(p, process, process.endpoints[e]);
            }
        }
        json_.close(']');
    }

    void open_row(const char* kind, std::size_t p, const Endpoint& endpoint) {
        json_.line();
        json_.open('{');
        json_.text("kind", kind);
        json_.number("process", p);
        json_.number("endpoint", endpoint.number);
    }

    // Slices: begin, duration, state, cause or -1, what had decided it or -1, open. Causes: the
    // numbers of base::TraceTransition.
    void write_states(std::size_t p, const Process& process, const Endpoint& endpoint) {
        open_row("states", p, endpoint);
        json_.text("label", label(process, endpoint));
        json_.open("causes", '[');
        for (const Transition& each : endpoint.transitions) {
            const base::TraceTransition& t = each.what;
            std::fprintf(file_, "%s[%.0f,%u,%u,%u,%u,%u,%u,%u,%u,%u,%u]",
                         &each == endpoint.transitions.data() ? "" : ",",
                         model_.since_begin(process, each.time_ns), t.stimulus, t.from, t.to,
                         t.verdict, t.event, t.recorded, t.flush, t.reason, t.attempt, t.late);
        }
        json_.close(']');
        json_.open("notes", '[');
        for (const auto& [time_ns, text] : endpoint.notes) {
            json_.open('[');
            json_.element(text);
            json_.decimal(model_.since_begin(process, time_ns));
            json_.close(']');
        }
        json_.close(']');
        json_.open("slices", '[');
        for (const Slice& slice : endpoint.slices) {
            const Transition* const decided = decision(endpoint, slice);
            std::fprintf(
                file_, "%s[%.0f,%.0f,%u,%lld,%lld,%d]", &slice == endpoint.slices.data() ? "" : ",",
                model_.since_begin(process, slice.begin_ns),
                static_cast<double>(slice.end_ns - slice.begin_ns),
                static_cast<unsigned>(slice.state),
                slice.cause == kNone ? -1ll : static_cast<long long>(slice.cause),
                decided ? static_cast<long long>(decided - endpoint.transitions.data()) : -1ll,
                slice.open ? 1 : 0);
        }
        json_.close(']');
        json_.close('}');
    }

    // The operations in the order in which they are drawn: by row, then by time.
    static std::vector<std::size_t> in_order(const Endpoint& endpoint, bool receives) {
        std::vector<std::size_t> out;
        for (std::size_t i = 0; i < endpoint.operations.size(); ++i) {
            if (endpoint.operations[i].is_receive() == receives) {
                out.push_back(i);
            }
        }
        std::ranges::stable_sort(out, {},
                                 [&](std::size_t i) { return endpoint.operations[i].lane; });
        return out;
    }

    // Which item each operation is.
    void number_operations() {
        std::int32_t next = 0;
        place_.resize(model_.processes.size());
        for (std::size_t p = 0; p < model_.processes.size(); ++p) {
            const auto& endpoints = model_.processes[p].endpoints;
            place_[p].resize(endpoints.size());
            for (std::size_t e = 0; e < endpoints.size(); ++e) {
                place_[p][e].resize(endpoints[e].operations.size());
                for (const bool receives : {false, true}) {
                    for (const std::size_t i : in_order(endpoints[e], receives)) {
                        place_[p][e][i] = next++;
                    }
                }
                next += static_cast<std::int32_t>(endpoints[e].frames.size());
            }
        }
    }

    std::uint32_t kind(const std::string& text) {
        const auto [at, added] = kind_index_.emplace(text, kinds_.size());
        if (added) {
            kinds_.push_back(text);
        }
        return static_cast<std::uint32_t>(at->second);
    }

    void close_row(std::size_t first) {
        json_.number("first", first);
        json_.number("count", items_.size() - first);
        json_.close('}');
    }

    void write_operations(std::size_t p, std::size_t e, bool receives) {
        const Process& process = model_.processes[p];
        const Endpoint& endpoint = process.endpoints[e];
        const std::vector<std::size_t> order = in_order(endpoint, receives);
        for (std::size_t i = 0; i < order.size();) {
            const std::size_t lane = endpoint.operations[order[i]].lane;
            const std::size_t first = items_.size();
            open_row(receives ? "receives" : "requests", p, endpoint);
            json_.text("label", lane == 0 ? (receives ? "receives" : "requests") : "");
            for (; i < order.size() && endpoint.operations[order[i]].lane == lane; ++i) {
                add(process, endpoint.operations[order[i]]);
            }
            close_row(first);
        }
    }

    void add(const Process& process, const Operation& operation) {
        Item item;
        item.begin = model_.since_begin(process, operation.begin_ns);
        item.duration = static_cast<double>(operation.end_ns - operation.begin_ns);
        item.length = static_cast<double>(operation.what.length);
        item.what = kind(name(operation.what.op)) |
                    static_cast<std::uint32_t>(operation.what.status) << kStatusShift |
                    (operation.done ? 0 : kOpenBit) | (operation.what.silent ? kSilentBit : 0) |
                    (operation.begun ? 0 : kUnbegunBit);
        item.number = static_cast<std::uint32_t>(operation.what.seq);
        item.context = operation.what.context;
        if (operation.partner != kNone) {
            item.partner =
                place_[operation.partner_process][operation.partner_endpoint][operation.partner];
        }
        items_.push_back(item);
    }

    void write_frames(std::size_t p, const Process& process, const Endpoint& endpoint) {
        if (endpoint.frames.empty()) {
            return;
        }
        const std::size_t first = items_.size();
        open_row("frames", p, endpoint);
        json_.text("label", "frames");
        for (const Frame& frame : endpoint.frames) {
            Item item;
            item.begin = model_.since_begin(process, frame.time_ns);
            item.length = static_cast<double>(frame.what.length);
            item.what = kind(frame_name(frame.what)) | kFrameBit | (frame.out ? 0 : kInBit);
            item.number = frame.what.number;
            items_.push_back(item);
        }
        close_row(first);
    }

    // One column behind the other, the widest first, so that each is aligned.
    void write_columns() {
        Columns out;
        const auto each = [&](auto&& of) {
            for (const Item& item : items_) {
                out.add(of(item));
            }
        };
        each([](const Item& item) { return item.begin; });
        each([](const Item& item) { return item.length; });
        each([](const Item& item) { return item.context; });
        each([](const Item& item) { return static_cast<float>(item.duration); });
        each([](const Item& item) { return item.what; });
        each([](const Item& item) { return item.number; });
        each([](const Item& item) { return item.partner; });
        out.write(file_);
    }

    const Model& model_;
    std::FILE* file_;
    JsonWriter json_;
    std::vector<Item> items_;
    std::vector<std::string> kinds_;
    std::map<std::string, std::size_t> kind_index_;
    std::vector<std::vector<std::vector<std::int32_t>>> place_;
};

} // namespace

void write_page(const Model& model, std::FILE* file) { Page(model, file).write(); }

} // namespace dat::trace
