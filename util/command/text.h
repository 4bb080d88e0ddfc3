// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Text for people: lines that fit the terminal, tables, and colours where there is one.
#ifndef DAT_UTIL_COMMAND_TEXT_H
#define DAT_UTIL_COMMAND_TEXT_H

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dat::command {

inline constexpr std::size_t kUnlimited = 0; // lines are as long as they are

// Columns of the terminal that `file` is; kUnlimited where it is none, so that a script finds
// a sentence in one line.
std::size_t columns_of(std::FILE* file);

// What another process or a file says, for a terminal: bytes other than printable ASCII are `?`.
std::string printable(std::string_view text);

// Breaks a sentence between its words into lines of `columns` at most, that each end. The first
// begins with `first`, the others with `indent`. A word is never broken.
std::string wrapped(std::string_view sentence, const std::string& first, const std::string& indent,
                    std::size_t columns);

enum class Colour { plain, green, yellow, red, dim, bold };

// Colours text for `file`: only where that is a terminal, and neither NO_COLOR nor TERM=dumb is
// in the environment (no-color.org).
class Paint {
  public:
    explicit Paint(std::FILE* file);
    std::string operator()(Colour colour, std::string_view text) const;

  private:
    const bool on_;
};

// The text, no longer than `columns` (kUnlimited: as long as it is).
std::string cut(std::string text, std::size_t columns);

// Columns under each other, as wide as they have to be, with two blanks between them. Nothing is
// behind the last one.
class Table {
  public:
    // `right`: the columns, by number, whose cells stand on the right.
    explicit Table(std::vector<std::size_t> right = {}) : right_(std::move(right)) {}
    void add(std::vector<std::string> cells, Colour colour = Colour::plain) {
        rows_.push_back({std::move(cells), colour});
    }
    // Each line begins with `indent`, and is cut off at `columns`. Colours are those of `paint`.
    std::string text(const std::string& indent = "", const Paint* paint = nullptr,
                     std::size_t columns = kUnlimited) const;

  private:
    struct Row {
        std::vector<std::string> cells;
        Colour colour;
    };
    std::vector<std::size_t> right_;
    std::vector<Row> rows_;
};

// Writes it, and sees that it has got there: false where it has not, such as on a full disk.
bool print(std::string_view text);

} // namespace dat::command

#endif
