// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See text.h.
#include "command/text.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <sys/ioctl.h>
#include <unistd.h>

namespace dat::command {

std::size_t columns_of(std::FILE* file) {
    if (isatty(fileno(file)) != 1) {
        return kUnlimited;
    }
    winsize size{};
    constexpr std::size_t kNarrowest = 40; // what some terminals tell is no size
    constexpr std::size_t kUsual = 80;
    return ioctl(fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col >= kNarrowest ? size.ws_col
                                                                                    : kUsual;
}

std::string printable(std::string_view text) {
    std::string out(text);
    std::ranges::replace_if(
        out, [](char c) { return c < 0x20 || c >= 0x7f; }, '?');
    return out;
}

std::string wrapped(std::string_view sentence, const std::string& first, const std::string& indent,
                    std::size_t columns) {
    std::string all;
    std::string line = first;
    bool empty = true;
    for (std::size_t begin = 0; begin < sentence.size();) {
        const std::size_t end = std::min(sentence.find(' ', begin), sentence.size());
        const std::string_view word = sentence.substr(begin, end - begin);
        if (!empty && columns != kUnlimited && line.size() + 1 + word.size() > columns) {
            all += line + "\n";
            line = indent;
            empty = true;
        }
        line += (empty ? "" : " ") + std::string(word);
        empty = false;
        begin = end + 1;
    }
    return all + line + "\n";
}

Paint::Paint(std::FILE* file)
    : on_([file] {
          const char* const refused = std::getenv("NO_COLOR");
          const char* const terminal = std::getenv("TERM");
          return isatty(fileno(file)) == 1 && !(refused && *refused != '\0') &&
                 !(terminal && std::string_view(terminal) == "dumb");
      }()) {}

std::string Paint::operator()(Colour colour, std::string_view text) const {
    constexpr std::array<std::string_view, 6> kCodes = {"",           "\033[32m", "\033[33m",
                                                        "\033[31;1m", "\033[2m",  "\033[1m"};
    const std::string_view code = kCodes[static_cast<std::size_t>(colour)];
    return on_ && !code.empty() ? std::string(code) + std::string(text) + "\033[0m"
                                : std::string(text);
}

std::string cut(std::string text, std::size_t columns) {
    if (columns != kUnlimited && text.size() > columns) {
        text.resize(columns);
    }
    return text;
}

std::string Table::text(const std::string& indent, const Paint* paint, std::size_t columns) const {
    std::vector<std::size_t> widths;
    for (const Row& row : rows_) {
        widths.resize(std::max(widths.size(), row.cells.size()));
        for (std::size_t i = 0; i < row.cells.size(); ++i) {
            widths[i] = std::max(widths[i], row.cells[i].size());
        }
    }
    std::string all;
    for (const Row& row : rows_) {
        std::string line = indent;
        for (std::size_t i = 0; i < row.cells.size(); ++i) {
            const std::size_t space = widths[i] - row.cells[i].size();
            const bool right = std::ranges::find(right_, i) != right_.end();
            line += (right ? std::string(space, ' ') : std::string()) + row.cells[i];
            if (i + 1 < row.cells.size()) {
                line.append((right ? 0 : space) + 2, ' ');
            }
        }
        line.erase(line.find_last_not_of(' ') + 1);
        line = cut(std::move(line), columns);
        all += (paint ? (*paint)(row.colour, line) : line) + "\n";
    }
    return all;
}

bool print(std::string_view text) {
    return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
           std::fflush(stdout) == 0;
}

} // namespace dat::command
