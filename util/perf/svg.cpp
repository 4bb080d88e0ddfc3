// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The pictures. Lines and bars differ by dashes, markers and shades as well as by
// colour, so that they can be told apart in black and white; on a dark page they are light. gnuplot
// would have to be where is measured, and draws for white paper alone. See report.h.
#include "report.h"
#include "way.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <initializer_list>
#include <iterator>
#include <vector>

namespace dat::perf {
namespace {

// The picture, in pixels.
constexpr double kWidth = 760;
constexpr double kHeight = 500;
constexpr double kLeft = 84;
constexpr double kRight = 24;
constexpr double kTop = 84;
constexpr double kBottom = 60;
constexpr std::size_t kSubtitle = 112; // characters in a line of what was measured
constexpr double kPlotWidth = kWidth - kLeft - kRight;

struct Look {
    const char* name; // of the classes s... (strokes) and f... (fills)
    const char* dashes;
};
constexpr std::array<Look, 6> kLooks = {
    {{"0", "none"}, {"1", "9 4"}, {"2", "2 3"}, {"3", "12 3 2 3"}, {"4", "5 2"}, {"5", "1 5"}}};
constexpr Look kMemoryLook{"l", "6 6"};
constexpr Look kSocketLook{"l", "1 4"};
constexpr Look kGrid{"g", "none"};
constexpr Look kAxis{"t", "none"};

// t: text and axes, b: behind everything, g: the grid, l: limits.
constexpr char kStyle[] =
    "<style>.ft{fill:#000}.st{stroke:#000}.fb{fill:#fff}.sg{stroke:#d8d8d8}.sl{stroke:#8a8a8a}"
    ".fl{fill:#8a8a8a}.s0{stroke:#000}.f0{fill:#000}.s1{stroke:#c1440e}.f1{fill:#c1440e}"
    ".s2{stroke:#1f5fa8}.f2{fill:#1f5fa8}.s3{stroke:#3d7d2f}.f3{fill:#3d7d2f}.s4{stroke:#7b3f9d}"
    ".f4{fill:#7b3f9d}.s5{stroke:#806000}.f5{fill:#806000}.fn{fill:none}"
    "@media (prefers-color-scheme:dark){.ft{fill:#eee}.st{stroke:#eee}.fb{fill:#181818}"
    ".sg{stroke:#444}.s0{stroke:#fff}.f0{fill:#fff}.s1{stroke:#ff8a5c}.f1{fill:#ff8a5c}"
    ".s2{stroke:#7ab4f5}.f2{fill:#7ab4f5}.s3{stroke:#86c978}.f3{fill:#86c978}.s4{stroke:#c79ae0}"
    ".f4{fill:#c79ae0}.s5{stroke:#d9b84a}.f5{fill:#d9b84a}}</style>\n";

bool is_limit(const Way& way) { return way.kind == Kind::memory || way.kind == Kind::socket; }

Look look_of(const Way& way, std::size_t index) {
    return way.kind == Kind::memory   ? kMemoryLook
           : way.kind == Kind::socket ? kSocketLook
                                      : kLooks[index % kLooks.size()];
}

std::string escaped(const std::string& text) {
    std::string safe;
    for (const char c : text) {
        safe += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
    }
    return safe;
}

class Picture {
  public:
    Picture(const std::string& title, std::string words, double height) {
        add("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
            "height=\"{1}\" font-family=\"sans-serif\" font-size=\"13\" role=\"img\">\n<title>{2}"
            "</title>\n",
            kWidth, height, escaped(title));
        text_ += kStyle;
        add("<rect width=\"100%\" height=\"100%\" class=\"fb\"/>\n");
        write(kLeft, 24, "start", title, 16);
        for (double y = 42; !words.empty(); y += 15) {
            const std::size_t space =
                words.size() > kSubtitle ? words.rfind(' ', kSubtitle) : words.size();
            write(kLeft, y, "start", words.substr(0, space), 11);
            words.erase(0, space + 1);
        }
    }
    template <class... Values> void add(fmt::format_string<Values...> format, Values&&... values) {
        fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
    }
    void write(double x, double y, const char* anchor, const std::string& words, int size = 13) {
        add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\" "
            "class=\"ft\">{}</text>\n",
            x, y, anchor, size, escaped(words));
    }
    void write_upwards(double x, double y, const std::string& words) {
        add("<text transform=\"translate({:.1f} {:.1f}) rotate(-90)\" text-anchor=\"middle\" "
            "class=\"ft\">{}</text>\n",
            x, y, escaped(words));
    }
    void line(double x1, double y1, double x2, double y2, const Look& look, double width = 1) {
        add("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"s{}\" "
            "stroke-width=\"{}\" stroke-dasharray=\"{}\"/>\n",
            x1, y1, x2, y2, look.name, width, look.dashes);
    }
    void lines(const std::string& points, const Look& look) {
        add("<polyline points=\"{}\" class=\"fn s{}\" stroke-width=\"1.8\" "
            "stroke-dasharray=\"{}\"/>\n",
            points, look.name, look.dashes);
    }
    // A sign for a way: circle, square, triangle, diamond; a limit has none.
    void mark(double x, double y, const Way& way, std::size_t index, const Look& look) {
        if (is_limit(way)) {
            return;
        }
        const char* fill = index < 4 ? look.name : "b";
        constexpr std::array<const char*, 3> kShapes = {"-4,-4 4,-4 4,4 -4,4", "0,-5 5,4 -5,4",
                                                        "0,-6 5,0 0,6 -5,0"};
        if (index % 4 == 0) {
            add("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" class=\"f{} s{}\"/>\n", x, y, fill,
                look.name);
        } else {
            add("<polygon transform=\"translate({:.1f} {:.1f})\" points=\"{}\" "
                "class=\"f{} s{}\"/>\n",
                x, y, kShapes[index % 4 - 1], fill, look.name);
        }
    }
    std::string end() { return text_ + "</svg>\n"; }

  private:
    std::string text_;
};

// From values to pixels, by logarithms.
class Scale {
  public:
    Scale(double low, double high, double from, double to)
        : low_(std::log10(low)), high_(std::log10(high)), from_(from), to_(to) {}
    double at(double value) const {
        const double part = high_ > low_ ? (std::log10(value) - low_) / (high_ - low_) : 0.5;
        return from_ + part * (to_ - from_);
    }

  private:
    const double low_;
    const double high_;
    const double from_;
    const double to_;
};

struct Range {
    double low = 0;
    double high = 0;
};

// Widened to 1, 2 or 5 times a power of ten.
Range widened(double low, double high) {
    const auto round = [](double value, bool up) {
        const double power = std::pow(10, std::floor(std::log10(value)));
        double best = up ? 10 * power : power;
        for (const double step : {1.0, 2.0, 5.0}) {
            const double candidate = step * power;
            if (up && candidate >= value) {
                return candidate;
            }
            best = !up && candidate <= value ? candidate : best;
        }
        return best;
    };
    return high == 0 ? Range{1, 10} : Range{round(low, false), round(high, true)};
}

Range range_of(const Summary& summary) {
    Range range{1e300, 0};
    for (const Point& point : summary.points) {
        for (const Row& row : point.rows) {
            if (!row.values.empty() && row.spread.low > 0) {
                range.low = std::min(range.low, row.spread.low);
                range.high = std::max(range.high, row.spread.high);
            }
        }
    }
    return widened(range.low, range.high);
}

// 1, 2 and 5 times powers of ten, as far as there is room for them.
std::vector<double> ticks(const Range& range, std::size_t room) {
    for (const std::initializer_list<double> steps :
         {std::initializer_list<double>{1, 2, 5}, {1}}) {
        std::vector<double> all;
        for (double power = std::pow(10, std::floor(std::log10(range.low)));
             power <= range.high * 1.001; power *= 10) {
            for (const double step : steps) {
                if (step * power > range.low * 0.999 && step * power < range.high * 1.001) {
                    all.push_back(step * power);
                }
            }
        }
        if (all.size() <= room || steps.size() == 1) {
            return all;
        }
    }
    return {};
}

constexpr char kLogarithmic[] = " (logarithmic)";

void draw_value_axis(Picture& picture, const Scale& y, const Range& range,
                     const std::string& unit) {
    constexpr std::size_t kRoom = 16;
    for (const double value : ticks(range, kRoom)) {
        picture.line(kLeft, y.at(value), kWidth - kRight, y.at(value), kGrid);
        picture.write(kLeft - 8, y.at(value) + 4, "end", fmt::format("{:g}", value), 12);
    }
    picture.write_upwards(20, (kTop + kHeight - kBottom) / 2, unit + kLogarithmic);
}

void draw_frame(Picture& picture, const std::string& words) {
    const double bottom = kHeight - kBottom;
    picture.line(kLeft, bottom, kWidth - kRight, bottom, kAxis);
    picture.line(kLeft, kTop, kLeft, bottom, kAxis);
    picture.write(kLeft + kPlotWidth / 2, kHeight - 16, "middle", words + kLogarithmic);
}

void draw_size_axis(Picture& picture, const Summary& summary, const Scale& x) {
    const double bottom = kHeight - kBottom;
    double last = -1000;
    for (const Point& point : summary.points) {
        const double at = x.at(static_cast<double>(point.size));
        picture.line(at, bottom, at, bottom + 5, kAxis);
        if (at - last > 52) {
            picture.write(at, bottom + 20, "middle", size_text(point.size), 12);
            last = at;
        }
    }
    draw_frame(picture, "size of a message or operation");
}

// One way's line, with the quarters as strokes up and down.
void draw_way(Picture& picture, const Summary& summary, std::size_t index, const Scale& x,
              const Scale& y) {
    const Way& way = summary.points.front().rows[index].way;
    const Look look = look_of(way, index);
    std::string points;
    for (const Point& point : summary.points) {
        const Row& row = point.rows[index];
        if (row.values.empty()) {
            continue;
        }
        const double at = x.at(static_cast<double>(point.size));
        points += fmt::format("{:.1f},{:.1f} ", at, y.at(row.spread.median));
        picture.line(at, y.at(row.spread.low), at, y.at(row.spread.high), {look.name, "none"});
    }
    picture.lines(points, look);
    for (const Point& point : summary.points) {
        if (!point.rows[index].values.empty()) {
            picture.mark(x.at(static_cast<double>(point.size)),
                         y.at(point.rows[index].spread.median), way, index, look);
        }
    }
}

constexpr std::size_t kInLine = 3; // ways in a line of the legend
constexpr double kLegendLine = 22;

double legend_height(std::size_t ways) {
    const std::size_t lines = (ways + kInLine - 1) / kInLine;
    return kLegendLine * static_cast<double>(lines);
}

// Below everything else.
void draw_legend(Picture& picture, const Summary& summary, const std::vector<Row>& rows,
                 bool marks) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::size_t line = i / kInLine;
        const double x = kLeft + kPlotWidth / kInLine * static_cast<double>(i % kInLine);
        const double y = kHeight + 6 + kLegendLine * static_cast<double>(line);
        const Look look = look_of(rows[i].way, i);
        picture.line(x, y, x + 38, y, look, 1.8);
        if (marks) {
            picture.mark(x + 19, y, rows[i].way, i, look);
        }
        picture.write(x + 46, y + 4, "start", shown_name(summary, rows[i]), 12);
    }
}

Picture begin(const Summary& summary, double height) {
    const Measure& measure = *summary.measure;
    return Picture(fmt::format("{}: {}", measure.name, measure.title),
                   conditions(measure, summary.waits) + "; " +
                       (measure.less_is_better ? "less" : "more") + " is better",
                   height);
}

std::string lines_text(const Summary& summary) {
    const std::vector<Row>& rows = summary.points.front().rows;
    Picture picture = begin(summary, kHeight + legend_height(rows.size()));
    const Range range = range_of(summary);
    const Scale x(static_cast<double>(summary.points.front().size),
                  static_cast<double>(summary.points.back().size), kLeft + 14,
                  kWidth - kRight - 24);
    const Scale y(range.low, range.high, kHeight - kBottom, kTop);
    draw_value_axis(picture, y, range, summary.measure->unit);
    draw_size_axis(picture, summary, x);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        draw_way(picture, summary, i, x, y);
    }
    draw_legend(picture, summary, rows, true);
    return picture.end();
}

// One bar for each way, from zero.
std::string bars_text(const Summary& summary) {
    const Measure& measure = *summary.measure;
    const std::vector<Row>& rows = summary.points.front().rows;
    constexpr double kBar = 40;
    constexpr double kNames = 190;
    Picture picture = begin(summary, kTop + 20 + kBar * static_cast<double>(rows.size()));
    double most = 0;
    for (const Row& row : rows) {
        most = std::max({most, row.spread.median, row.spread.high});
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const Row& row = rows[i];
        const double y = kTop + kBar * static_cast<double>(i);
        picture.write(kNames - 10, y + 19, "end", shown_name(summary, row));
        if (row.values.empty() || most == 0) {
            picture.write(kNames + 6, y + 19, "start",
                          row.ending == Ending::failed ? "failed" : "not offered", 12);
            continue;
        }
        const double scale = (kWidth - kNames - 130) / most;
        const Look look = look_of(row.way, i);
        picture.add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"26\" "
                    "class=\"f{} s{}\" fill-opacity=\"0.35\" stroke-dasharray=\"{}\"/>\n",
                    kNames, y, row.spread.median * scale, look.name, look.name, look.dashes);
        picture.line(kNames + row.spread.low * scale, y + 13, kNames + row.spread.high * scale,
                     y + 13, kAxis, 2);
        picture.write(kNames + row.spread.high * scale + 8, y + 18, "start",
                      figure_text(row.spread.median) + " " + measure.unit);
    }
    return picture.end();
}

// Buckets that are drawn as one: where few operations fell, single ones would be a comb.
constexpr std::size_t kTogether = 4;

// The part of a way's operations in each of these, as steps.
std::string steps_of(const Histogram& single, double unit, double least, const Scale& x,
                     const Scale& y) {
    std::string points;
    bool any = false;
    for (std::size_t i = 0; i < Histogram::kBuckets; i += kTogether) {
        const std::size_t end = std::min(i + kTogether, Histogram::kBuckets);
        if (single.most_ns() < Histogram::begin_ns(i)) {
            break;
        }
        std::uint64_t count = 0;
        for (std::size_t k = i; k < end; ++k) {
            count += single.count(k);
        }
        any = any || count > 0;
        if (any) {
            const double part =
                100 * static_cast<double>(count) / static_cast<double>(single.total());
            const double height = y.at(std::max(part, least));
            // What takes no time at all has no place on a logarithmic axis.
            const auto from =
                static_cast<double>(std::max<std::uint64_t>(Histogram::begin_ns(i), 1));
            points +=
                fmt::format("{:.1f},{:.1f} {:.1f},{:.1f} ", x.at(from / unit), height,
                            x.at(static_cast<double>(Histogram::end_ns(end - 1)) / unit), height);
        }
    }
    return points;
}

} // namespace

std::string histogram_svg(const Summary& summary, const Point& point) {
    const double unit = 1000.0 * transfers(summary.measure->pattern);
    Range times{1e300, 0};
    std::uint64_t most = 0;
    std::vector<Row> rows; // that have any
    for (const Row& row : point.rows) {
        if (row.single.total() > 0) {
            std::size_t first = 0;
            while (first + 1 < Histogram::kBuckets && row.single.count(first) == 0) {
                ++first;
            }
            first -= first % kTogether;
            const auto begin = std::max<std::uint64_t>(Histogram::begin_ns(first), 1);
            times.low = std::min(times.low, static_cast<double>(begin) / unit);
            times.high = std::max(times.high, static_cast<double>(row.single.most_ns()) / unit);
            most = std::max(most, row.single.total());
            rows.push_back(row);
        }
    }
    if (most == 0) {
        return {};
    }
    times = widened(times.low, times.high * 1.13); // to the end of its step
    const Range parts = widened(50.0 / static_cast<double>(most), 100);
    Picture picture(
        fmt::format("{}: single operations of {}", summary.measure->name, size_text(point.size)),
        "each operation timed by itself, in a run of its own; the share that fell into "
        "each of 8 parts of a power of two of nanoseconds, all rounds together",
        kHeight + legend_height(point.rows.size()));
    const Scale x(times.low, times.high, kLeft + 4, kWidth - kRight - 4);
    const Scale y(parts.low, parts.high, kHeight - kBottom, kTop);
    draw_value_axis(picture, y, parts, "% of operations");
    constexpr std::size_t kRoom = 14;
    for (const double tick : ticks(times, kRoom)) {
        picture.line(x.at(tick), kTop, x.at(tick), kHeight - kBottom, kGrid);
        picture.write(x.at(tick), kHeight - kBottom + 20, "middle", fmt::format("{:g}", tick), 12);
    }
    draw_frame(picture, std::string(summary.measure->unit) + ", " + summary.measure->title);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        picture.lines(steps_of(rows[i].single, unit, parts.low, x, y), look_of(rows[i].way, i));
    }
    draw_legend(picture, summary, rows, false);
    return picture.end();
}

std::string svg_text(const Summary& summary) {
    const bool many = summary.measure->sized && summary.points.size() > 1;
    return many ? lines_text(summary) : bars_text(summary);
}

} // namespace dat::perf
