// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// How a process is driven by another: by lines on its standard input, each answered by
// one line.
#ifndef DAT_TEST_TRANSPORT_LINES_H
#define DAT_TEST_TRANSPORT_LINES_H

#include <poll.h>
#include <unistd.h>

#include <cstddef>
#include <iostream>
#include <string>

namespace dat::test {

// Answers lines until `quit` or the end of the input, and calls `pump` every
// millisecond while there is none.
template <class Answer, class Pump> void serve_lines(Answer&& answer, Pump&& pump) {
    std::string input;
    for (;;) {
        pollfd entry{STDIN_FILENO, POLLIN, 0};
        pump();
        if (poll(&entry, 1, 1) <= 0)
            continue;
        char room[4096];
        const ssize_t got = read(STDIN_FILENO, room, sizeof room);
        if (got <= 0)
            return;
        input.append(room, static_cast<std::size_t>(got));
        for (std::size_t end; (end = input.find('\n')) != std::string::npos;) {
            const std::string line = input.substr(0, end);
            input.erase(0, end + 1);
            if (line == "quit")
                return;
            std::cout << answer(line) << std::endl;
        }
    }
}

} // namespace dat::test

#endif
