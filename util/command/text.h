// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Text for people: lines that fit the terminal, tables, and colours where there is one.
// May include: std.
#ifndef DAT_UTIL_COMMAND_TEXT_H
#define DAT_UTIL_COMMAND_TEXT_H

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace dat::command {

inline constexpr std::size_t kUnlimited = 0; // lines are as long as they are

// Columns of the terminal that `file` is; kUnlimited where it is none, so that a script finds
// a sentence in one line.
std::size_t columns_of(std::FILE* file);

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

// Columns under each other, as wide as they have to be, with two blanks between them. Nothing is
// behind the last one.
class Table {
  public:
    void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
    // Each line begins with `indent`.
    std::string text(const std::string& indent = "") const;

  private:
    std::vector<std::vector<std::string>> rows_;
};

// Writes it, and sees that it has got there: false where it has not, such as on a full disk.
bool print(std::string_view text);

} // namespace dat::command

#endif
