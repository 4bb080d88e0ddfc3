// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Writes JSON as it comes, without a tree in memory: a trace has millions of events.
#ifndef DAT_UTIL_TRACE_JSON_H
#define DAT_UTIL_TRACE_JSON_H

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace dat::trace {

// A text between quotes, of printable ASCII: any other byte is escaped as if it were Latin-1, and
// so is `<`, so that the text may stand in a script of a page.
std::string quoted(std::string_view text);

// Objects and arrays into a file, each call one piece. The commas are its own.
class JsonWriter {
  public:
    explicit JsonWriter(std::FILE* file) : file_(file) {}

    void open(char bracket) { // `{` or `[`, as an element
        separate();
        std::fputc(bracket, file_);
        first_ = true;
    }
    void open(std::string_view key, char bracket) {
        write_key(key);
        std::fputc(bracket, file_);
        first_ = true;
    }
    void close(char bracket) {
        std::fputc(bracket, file_);
        first_ = false;
    }
    void text(std::string_view key, std::string_view value) {
        write_key(key);
        std::fputs(quoted(value).c_str(), file_);
    }
    void number(std::string_view key, std::uint64_t value) {
        write_key(key);
        std::fprintf(file_, "%llu", static_cast<unsigned long long>(value));
    }
    void boolean(std::string_view key, bool value) {
        write_key(key);
        std::fputs(value ? "true" : "false", file_);
    }
    // Nanoseconds as microseconds.
    void microseconds(std::string_view key, double ns) {
        write_key(key);
        std::fprintf(file_, "%.3f", ns / 1e3);
    }
    void decimal(double value) {
        separate();
        std::fprintf(file_, "%.17g", value);
    }
    void element(std::string_view value) {
        separate();
        std::fputs(quoted(value).c_str(), file_);
    }
    void element(std::uint64_t value) {
        separate();
        std::fprintf(file_, "%llu", static_cast<unsigned long long>(value));
    }
    void line() { std::fputc('\n', file_); }

  private:
    void separate() {
        if (!first_) {
            std::fputc(',', file_);
        }
        first_ = false;
    }
    void write_key(std::string_view key) {
        separate();
        std::fprintf(file_, "\"%.*s\":", static_cast<int>(key.size()), key.data());
    }

    std::FILE* file_;
    bool first_ = true;
};

} // namespace dat::trace

#endif
