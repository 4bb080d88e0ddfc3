// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The program `peer` as a child of a test, and connections with it.
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
    // Asks "region"; how to reach it.
    Remote region(std::size_t size);

    // After SIGSTOP it has stopped when this returns.
    void signal(int number) const;
    // SIGKILL, and waits until it is gone.
    void kill();

  private:
    const Transport& transport_;
    int socket_;
    pid_t pid_;
    std::string input_;
};

// The child listens, this side connects.
struct ToChild {
    explicit ToChild(const Transport& transport);
    void connect();
    // Up to where the child has the request.
    void request();

    Side side;
    Child child;
    Bytes address;
    Endpoint endpoint;
};

// This side listens, the child connects; its request is there.
struct FromChild {
    explicit FromChild(const Transport& transport);

    Side side;
    Child child;
    std::optional<Event> request;
    std::optional<Endpoint> endpoint;
};

std::vector<Op*> post_receives(Endpoint& endpoint, std::vector<Bytes>& buffers);
// DISC-16: of a peer's death either end may be reported, but one, and once.
void require_one_end(Side& side, const Endpoint& endpoint);

} // namespace dat::test

#endif
