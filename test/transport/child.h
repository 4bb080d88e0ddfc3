// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The program `peer` as a child of a test. May include: the fixture, POSIX.
#ifndef DAT_TEST_TRANSPORT_CHILD_H
#define DAT_TEST_TRANSPORT_CHILD_H

#include "fixture.h"

#include <sys/types.h>

#include <string>

namespace dat::test {

// Ends with its owner, and with the test's process whatever becomes of that.
class Child {
  public:
    explicit Child(const Transport& transport);
    ~Child() { kill(); }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    // Sends a line without waiting for the answer.
    void tell(const std::string& line);
    // Waits for the next answer, polling every Side meanwhile.
    std::string answer();
    std::string ask(const std::string& line) {
        tell(line);
        return answer();
    }
    // Asks, and requires exactly this answer.
    void expect(const std::string& line, const std::string& answer);
    // Asks "listen"; where it listens.
    Bytes listen();

    void signal(int number) const;
    // SIGKILL, and waits until it is gone.
    void kill();

  private:
    const Transport& transport_;
    int socket_;
    pid_t pid_;
    std::string input_;
};

} // namespace dat::test

#endif
