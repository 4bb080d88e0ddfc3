// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What all commands have in common: options, --help, --version, and what becomes of
// mistakes.
#ifndef DAT_UTIL_COMMAND_COMMAND_H
#define DAT_UTIL_COMMAND_COMMAND_H

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace dat::command {

// What the user wrote cannot be understood; the text says why, in one line.
struct Usage : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// The options of one command. --help and --version are there, both on standard output.
// Members are written to by parse(), and keep their value where an option is not given.
class Command {
  public:
    // `name`: of the program; `summary`: a sentence.
    Command(const char* name, const char* summary);
    ~Command();
    Command(const Command&) = delete;
    Command& operator=(const Command&) = delete;

    // `names`: "--json", or "-f,--format". `kind`: what stands for the value in the help text.
    void flag(const char* names, bool& value, const char* help);
    void text(const char* names, std::string& value, const char* kind, const char* help);
    void list(const char* names, std::vector<std::string>& values, const char* kind,
              const char* help); // words between commas, or the option again
    void choice(const char* names, std::string& value, const std::vector<std::string>& words,
                const char* help);
    // For what these do not do.
    CLI::App& app() { return *app_; }

    // False: it was --help or --version, and there is nothing more to do. Throws Usage.
    bool parse(int argc, char** argv);

  private:
    const std::unique_ptr<CLI::App> app_;
};

// The whole of main(): what `body` returns, or, with one line on standard error, `usage` where it
// throws Usage, and `trouble` where it throws something else.
int run(const char* name, int trouble, int usage, const std::function<int()>& body);

// "dat_doctor (dat) 0.1.0"
std::string version_line(const char* name);
// "0.1.0"
const char* version();

} // namespace dat::command

#endif
