// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The pictures. Lines and bars differ by dashes, markers and shades as well as by
// colour, so that they can be told apart in black and white. See report.h.
// May include: util/perf, std, fmt.
#include "report.h"
#include "way.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <iterator>

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
    const char* colour;
    const char* dashes;
};
constexpr std::array<Look, 6> kLooks = {{{"#000000", "none"},
                                         {"#c1440e", "9 4"},
                                         {"#1f5fa8", "2 3"},
                                         {"#3d7d2f", "12 3 2 3"},
                                         {"#7b3f9d", "5 2"},
                                         {"#806000", "1 5"}}};
constexpr Look kMemoryLook{"#8a8a8a", "6 6"};
constexpr Look kSocketLook{"#8a8a8a", "1 4"};

Look look_of(const Way& way, std::size_t index) {
    switch (way.kind) {
    case Kind::memory:
        return kMemoryLook;
    case Kind::socket:
        return kSocketLook;
    case Kind::fabric:
        break;
    }
    return kLooks[index % kLooks.size()];
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
    Picture(const Measure& measure, bool waits, double height) {
        add("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
            "height=\"{1}\" font-family=\"sans-serif\" font-size=\"13\">\n",
            kWidth, height);
        add("<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n");
        write(kLeft, 24, "start", fmt::format("{}: {}", measure.name, measure.title), 16);
        std::string rest = conditions(measure, waits) + "; " +
                           (measure.less_is_better ? "less" : "more") + " is better";
        for (double y = 42; !rest.empty(); y += 15) {
            const std::size_t space =
                rest.size() > kSubtitle ? rest.rfind(' ', kSubtitle) : rest.size();
            write(kLeft, y, "start", rest.substr(0, space), 11);
            rest.erase(0, space + 1);
        }
    }
    template <class... Values> void add(fmt::format_string<Values...> format, Values&&... values) {
        fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
    }
    void write(double x, double y, const char* anchor, const std::string& words, int size = 13) {
        add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\">{}</text>\n", x, y,
            anchor, size, escaped(words));
    }
    void line(double x1, double y1, double x2, double y2, const Look& look, double width = 1) {
        add("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
            "stroke-width=\"{}\" stroke-dasharray=\"{}\"/>\n",
            x1, y1, x2, y2, look.colour, width, look.dashes);
    }
    // A sign for a way: circle, square, triangle, diamond; a limit has none.
    void mark(double x, double y, const Way& way, std::size_t index, const Look& look) {
        if (way.kind != Kind::fabric) {
            return;
        }
        const char* fill = index < 4 ? look.colour : "#ffffff";
        constexpr std::array<const char*, 3> kShapes = {"-4,-4 4,-4 4,4 -4,4", "0,-5 5,4 -5,4",
                                                        "0,-6 5,0 0,6 -5,0"};
        if (index % 4 == 0) {
            add("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\" stroke=\"{}\"/>\n", x, y,
                fill, look.colour);
        } else {
            add("<polygon transform=\"translate({:.1f} {:.1f})\" points=\"{}\" fill=\"{}\" "
                "stroke=\"{}\"/>\n",
                x, y, kShapes[index % 4 - 1], fill, look.colour);
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

// Of all values, widened to 1, 2 or 5 times a power of ten.
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
    return range.high == 0 ? Range{1, 10} : Range{round(range.low, false), round(range.high, true)};
}

constexpr Look kGrid{"#d8d8d8", "none"};
constexpr Look kAxis{"#000000", "none"};

void draw_value_axis(Picture& picture, const Scale& y, const Range& range, const char* unit) {
    for (double power = std::pow(10, std::floor(std::log10(range.low))); power <= range.high;
         power *= 10) {
        for (const double step : {1.0, 2.0, 5.0}) {
            const double value = step * power;
            if (value < range.low * 0.999 || value > range.high * 1.001) {
                continue;
            }
            picture.line(kLeft, y.at(value), kWidth - kRight, y.at(value), kGrid);
            picture.write(kLeft - 8, y.at(value) + 4, "end", fmt::format("{:g}", value), 12);
        }
    }
    picture.add("<text transform=\"translate(20 {:.1f}) rotate(-90)\" text-anchor=\"middle\">{}"
                "</text>\n",
                (kTop + kHeight - kBottom) / 2, escaped(unit));
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
    picture.line(kLeft, bottom, kWidth - kRight, bottom, kAxis);
    picture.line(kLeft, kTop, kLeft, bottom, kAxis);
    picture.write(kLeft + kPlotWidth / 2, kHeight - 16, "middle", "size of a message or operation");
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
        picture.line(at, y.at(row.spread.low), at, y.at(row.spread.high), {look.colour, "none"});
    }
    picture.add("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\" "
                "stroke-dasharray=\"{}\"/>\n",
                points, look.colour, look.dashes);
    for (const Point& point : summary.points) {
        if (!point.rows[index].values.empty()) {
            picture.mark(x.at(static_cast<double>(point.size)),
                         y.at(point.rows[index].spread.median), way, index, look);
        }
    }
}

std::string legend_of(const Row& row) {
    const bool limit = row.way.kind != Kind::fabric;
    return (limit ? "limit: " : "") + row.way.label;
}

constexpr std::size_t kInLine = 3; // ways in a line of the legend
constexpr double kLegendLine = 22;

double legend_height(const std::vector<Row>& rows) {
    return kLegendLine * static_cast<double>((rows.size() + kInLine - 1) / kInLine);
}

// Below everything else.
void draw_legend(Picture& picture, const std::vector<Row>& rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const double x = kLeft + kPlotWidth / kInLine * static_cast<double>(i % kInLine);
        const double y = kHeight + 6 + kLegendLine * static_cast<double>(i / kInLine);
        const Look look = look_of(rows[i].way, i);
        picture.line(x, y, x + 38, y, look, 1.8);
        picture.mark(x + 19, y, rows[i].way, i, look);
        picture.write(x + 46, y + 4, "start", legend_of(rows[i]), 12);
    }
}

std::string lines_text(const Summary& summary) {
    const Measure& measure = *summary.measure;
    const std::vector<Row>& rows = summary.points.front().rows;
    Picture picture(measure, summary.waits, kHeight + legend_height(rows));
    const Range range = range_of(summary);
    const Scale x(static_cast<double>(summary.points.front().size),
                  static_cast<double>(summary.points.back().size), kLeft + 14,
                  kWidth - kRight - 24);
    const Scale y(range.low, range.high, kHeight - kBottom, kTop);
    draw_value_axis(picture, y, range, measure.unit);
    draw_size_axis(picture, summary, x);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        draw_way(picture, summary, i, x, y);
    }
    draw_legend(picture, rows);
    return picture.end();
}

// One bar for each way, from zero.
std::string bars_text(const Summary& summary) {
    const Measure& measure = *summary.measure;
    const std::vector<Row>& rows = summary.points.front().rows;
    constexpr double kBar = 40;
    constexpr double kNames = 190;
    Picture picture(measure, summary.waits, kTop + 20 + kBar * static_cast<double>(rows.size()));
    double most = 0;
    for (const Row& row : rows) {
        most = std::max({most, row.spread.median, row.spread.high});
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const Row& row = rows[i];
        const double y = kTop + kBar * static_cast<double>(i);
        picture.write(kNames - 10, y + 19, "end", legend_of(row));
        if (row.values.empty() || most == 0) {
            picture.write(kNames + 6, y + 19, "start",
                          row.ending == Ending::failed ? "failed" : "not offered", 12);
            continue;
        }
        const double scale = (kWidth - kNames - 130) / most;
        const Look look = look_of(row.way, i);
        picture.add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"26\" fill=\"{}\" "
                    "fill-opacity=\"0.35\" stroke=\"{}\" stroke-dasharray=\"{}\"/>\n",
                    kNames, y, row.spread.median * scale, look.colour, look.colour, look.dashes);
        picture.line(kNames + row.spread.low * scale, y + 13, kNames + row.spread.high * scale,
                     y + 13, kAxis, 2);
        picture.write(kNames + row.spread.high * scale + 8, y + 18, "start",
                      figure_text(row.spread.median) + " " + measure.unit);
    }
    return picture.end();
}

} // namespace

std::string svg_text(const Summary& summary) {
    const bool many = summary.measure->sized && summary.points.size() > 1;
    return many ? lines_text(summary) : bars_text(summary);
}

} // namespace dat::perf
