// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See conf.h.
#include "dat-shim/conf.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

namespace dat::shim {
namespace {

struct Word {
    std::string text;
    std::size_t column = 0;
    bool closed = true; // a quote that was opened was closed
};

// The words of one line; `\` before a character takes it as it is, also within quotes.
class Words {
  public:
    explicit Words(std::string_view line) : line_(line) {}

    std::optional<Word> next() {
        while (at_ < line_.size() && is_space(line_[at_])) {
            ++at_;
        }
        if (at_ == line_.size() || line_[at_] == '#') {
            return std::nullopt;
        }
        Word word;
        word.column = at_ + 1;
        const bool quoted = line_[at_] == '"';
        at_ += quoted ? 1 : 0;
        word.closed = !quoted;
        for (; at_ < line_.size(); ++at_) {
            const char c = line_[at_];
            if (quoted && c == '"') {
                word.closed = true;
                ++at_;
                break;
            }
            if (!quoted && (is_space(c) || c == '#')) {
                break;
            }
            if (c == '\\' && at_ + 1 < line_.size()) {
                ++at_;
            }
            word.text += line_[at_];
        }
        return word;
    }
    std::size_t column() const { return at_ + 1; }

  private:
    static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f'; }

    std::string_view line_;
    std::size_t at_ = 0;
};

// "<prefix>2.0"
bool read_version(std::string_view text, std::string_view prefix, unsigned& major,
                  unsigned& minor) {
    if (!text.starts_with(prefix)) {
        return false;
    }
    text.remove_prefix(prefix.size());
    const char* const end = text.data() + text.size();
    const auto first = std::from_chars(text.data(), end, major);
    if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') {
        return false;
    }
    const auto second = std::from_chars(first.ptr + 1, end, minor);
    return second.ec == std::errc() && second.ptr == end;
}

// One of two words.
bool read_choice(const std::string& text, std::string_view yes, std::string_view no, bool& value) {
    value = text == yes;
    return value || text == no;
}

constexpr std::array<const char*, 8> kFields = {
    "the name of an interface adapter",
    "the version of the API, u2.0, u1.2 or k2.0",
    "threadsafe or nonthreadsafe",
    "default or nondefault",
    "the path of a library",
    "the version of the provider, as dapl.2.0",
    "parameters, as \"eth0 0\" or \"\"",
    "platform parameters, as \"\"",
};

// Reads field number `field` from the word; false: it is none.
bool read_field(std::size_t field, const Word& word, ConfEntry& entry, bool& kernel) {
    if (!word.closed) {
        return false;
    }
    switch (field) {
    case 0:
        entry.name = word.text;
        return !word.text.empty() && word.text.size() < 256;
    case 1:
        kernel = word.text.starts_with('k');
        return read_version(word.text, kernel ? "k" : "u", entry.major, entry.minor);
    case 2:
        return read_choice(word.text, "threadsafe", "nonthreadsafe", entry.thread_safe);
    case 3:
        return read_choice(word.text, "default", "nondefault", entry.is_default);
    case 4:
        entry.library = word.text;
        return !word.text.empty();
    case 5:
        entry.provider_version = word.text;
        return word.text.find('.') != std::string::npos;
    case 6:
        entry.parameters = word.text;
        return true;
    default:
        entry.platform = word.text;
        return true;
    }
}

// nullopt: nothing is on the line for user space, or it is bad.
std::optional<ConfEntry> parse_line(std::string_view line, std::size_t number,
                                    const std::function<void(const ConfProblem&)>& complain) {
    // Names go into strings of C. A file in UTF-16 has one beside each letter.
    if (const std::size_t nul = line.find('\0'); nul != std::string_view::npos) {
        complain({number, nul + 1, "text without a byte of 0"});
        return std::nullopt;
    }
    Words words(line);
    ConfEntry entry;
    bool kernel = false;
    for (std::size_t field = 0; field < kFields.size(); ++field) {
        const std::optional<Word> word = words.next();
        if (!word && field == 0) {
            return std::nullopt;
        }
        if (!word && field == kFields.size() - 1) {
            break; // seldom is anything there
        }
        if (!word || !read_field(field, *word, entry, kernel)) {
            complain({number, word ? word->column : words.column(),
                      word && !word->closed ? "a closing quote" : kFields[field]});
            return std::nullopt;
        }
    }
    if (const std::optional<Word> surplus = words.next()) {
        complain({number, surplus->column, "the end of the line"});
        return std::nullopt;
    }
    return kernel ? std::nullopt : std::optional(entry);
}

} // namespace

std::vector<ConfEntry> parse_conf(std::string_view text,
                                  const std::function<void(const ConfProblem&)>& complain) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text.starts_with(kByteOrderMark)) { // some editors begin a file with it
        text.remove_prefix(kByteOrderMark.size());
    }
    std::vector<ConfEntry> entries;
    for (std::size_t number = 1; !text.empty(); ++number) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        if (auto entry = parse_line(text.substr(0, end), number, complain)) {
            entries.push_back(std::move(*entry));
        }
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return entries;
}

} // namespace dat::shim
