// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Finds the domains of this host that can be looked at, and looks: each has an abstract socket, and
// gives whoever may look a page of memory (prov/dat/engine/statistics_page.h). What is read there
// was written by another process, and is taken as nothing but numbers and text.
#ifndef UTIL_TOP_LOOK_H
#define UTIL_TOP_LOOK_H

#include "command/text.h"
#include "engine/statistics_page.h"

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace dat::top {

// A domain of some process, as it was when it was looked at.
struct Domain {
    std::string socket;
    pid_t process = 0; // 0: in a process namespace that is not seen here
    uid_t user = 0;
    std::string command; // as /proc/PID/comm has it; empty: it cannot be read
    // False: it has not given its page, since nothing in that process makes progress, or it is
    // full.
    bool answers = false;
    std::string name;
    std::string version;
    std::uint64_t opened_ns = 0;                // CLOCK_REALTIME
    double age_s = 0;                           // of the sheet
    bool stands_still = false;                  // it is older than it should be
    std::unique_ptr<engine::page::Sheet> sheet; // nullptr: there is none
    std::vector<engine::page::End> ends;
};

struct Sight {
    std::vector<Domain> domains; // in the order of processes, then of opening
    std::size_t of_others = 0;   // domains that are not for this user
    std::uint64_t now_ns = 0;    // CLOCK_MONOTONIC
};

// Text of a page: whatever bytes, without what a terminal would obey.
template <std::size_t size> std::string clean(const engine::page::Text<size>& text) {
    return command::printable(std::string_view(text.data(), strnlen(text.data(), size)));
}

// A socket of a domain that listens.
struct Listening {
    std::string name;
    std::string inode;
    friend auto operator<=>(const Listening&, const Listening&) = default;
};
// Those in /proc/net/unix, or a file like it, by name.
std::vector<Listening> listening(const std::string& file);

class Looker {
  public:
    Looker();
    ~Looker();
    Looker(const Looker&) = delete;
    Looker& operator=(const Looker&) = delete;

    // Looks at all there are, or asks at those of one process alone. Waits for those that have
    // not answered yet, in all no longer than `patience`.
    Sight look(std::chrono::milliseconds patience, std::optional<pid_t> only = {});

  private:
    class Watched;
    void find(std::optional<pid_t> only);
    std::map<std::string, std::unique_ptr<Watched>> watched_; // by name
};

} // namespace dat::top

#endif
