// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What answers as `dat_perf serve` does, and lies: the client neither believes nor obeys it.
#include "util/perf/remote.h"
#include "util/perf/net.h"
#include "util/perf/pair.h"
#include "util/perf/peer.h"

#include <criterion/criterion.h>

#include <functional>
#include <string>
#include <sys/socket.h>
#include <thread>

using namespace dat::perf;

namespace {

// Lets one client in: it has the same version, since it says what the client does. Then lie().
class FalseServer {
  public:
    explicit FalseServer(std::function<void(Peer&)> lie)
        : listener_(listen_on("127.0.0.1", "0")), thread_([this, lie = std::move(lie)] {
              try {
                  Peer client(::accept(listener_.get(), nullptr, nullptr), Role::server);
                  client.tell(client.hear());
                  lie(client);
              } catch (const Failure&) {
                  // It has gone.
              }
          }) {}
    ~FalseServer() { thread_.join(); }
    std::string name() const { return "127.0.0.1:" + std::to_string(own_port(listener_.get())); }

  private:
    Fd listener_;
    std::thread thread_;
};

} // namespace

Test(perf_remote, more_results_than_servers__are_not_listened_to, .timeout = 60) {
    FalseServer server([](Peer& client) {
        client.tell("ended 0 0 ");
        client.tell("18446744073709551615");
        for (;;) {
            client.tell("again");
        }
    });
    Remote remote(server.name());
    const Outcome outcome = remote.end(1);
    cr_assert(outcome.ending == Ending::failed);
    cr_assert(outcome.said.empty());
}

Test(perf_remote, facts_of_another_host__colour_no_terminal, .timeout = 60) {
    FalseServer server([](Peer& client) {
        client.hear();
        client.tell("kernel\t\x1b[31mred\x9b\n");
    });
    Remote remote(server.name());
    const Facts facts = remote.machine();
    cr_assert_eq(facts.size(), 1u);
    cr_assert_eq(facts[0].second, "?[31mred?");
}
