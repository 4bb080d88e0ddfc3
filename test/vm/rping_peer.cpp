// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The other side of rdma-core's rping: an ordinary libfabric program that speaks its
// protocol. The client names a buffer, the server reads it, and writes what it read
// into a second buffer that the client names; each step is a message of 16 bytes.
// Contents are checked on the client's side.
//
//   rping_peer server ADDRESS COUNT SIZE        prints `port N` when it listens
//   rping_peer client FROM TO PORT COUNT SIZE   tries until somebody listens there
//
// COUNT rounds with SIZE bytes, then the client disconnects; over an RDMA device where
// FI_DAT_TRANSPORT=verbs. Exit status 0 if all went well.
#include "../transport/fixture.h"

#include <netinet/in.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>

namespace dat::test {

void fail(const char* file, int line, const std::string& message) {
    std::cerr << file << ':' << line << ": " << message << std::endl;
    std::_Exit(1);
}

namespace {

// A step's message: which memory of the client's; from the server its contents mean
// nothing. All in network byte order.
struct Advertisement {
    std::uint64_t address;
    std::uint32_t key;
    std::uint32_t size;
};
static_assert(sizeof(Advertisement) == 16);

std::uint64_t swapped(std::uint64_t value) { return __builtin_bswap64(value); }

// A connection and its one posted receive.
class Talk {
  public:
    explicit Talk(Endpoint& endpoint) : endpoint_(endpoint) { expect(); }

    // `last`: rping leaves when it has that, and a device may give it before it has acknowledged
    // it, so our end is not told any more that it came. rping's own exit status says that it did.
    void say(const Advertisement& what, bool last = false) {
        sent_ = what;
        const Op& op = endpoint_.send(&sent_, sizeof sent_);
        wait_op(op);
        DAT_REQUIRE(op.ok() || (last && op.err == FI_ECANCELED), error_name(op.err));
    }
    Advertisement hear() {
        wait_op(*receive_);
        DAT_REQUIRE(receive_->ok(), error_name(receive_->err));
        DAT_REQUIRE(receive_->len == sizeof got_, std::to_string(receive_->len));
        const Advertisement got = got_;
        expect();
        return got;
    }

  private:
    void expect() { receive_ = &endpoint_.recv(&got_, sizeof got_); }

    Endpoint& endpoint_;
    Advertisement sent_{};
    Advertisement got_{};
    Op* receive_ = nullptr;
};

void done(const Op& op) {
    wait_op(op);
    DAT_REQUIRE(op.ok(), error_name(op.err));
}

Remote remote(const Advertisement& of) { return {swapped(of.address), ntohl(of.key)}; }

void serve_rounds(Endpoint& endpoint, Talk& talk, int count, std::size_t size) {
    Bytes bytes(size);
    for (int round = 0; round < count; ++round) {
        const Advertisement source = talk.hear();
        DAT_REQUIRE(ntohl(source.size) == size, std::to_string(ntohl(source.size)));
        done(endpoint.read(bytes.data(), size, remote(source)));
        talk.say({});
        const Advertisement sink = talk.hear();
        done(endpoint.write(bytes.data(), size, remote(sink)));
        talk.say({}, round + 1 == count);
    }
}

Advertisement advertise(const Region& region) {
    const Remote at = region.at(0);
    return {swapped(at.address), htonl(static_cast<std::uint32_t>(at.key)),
            htonl(static_cast<std::uint32_t>(region.size()))};
}

void ask_rounds(Talk& talk, Region& source, Region& sink, int count) {
    for (int round = 0; round < count; ++round) {
        // A string that fills the buffer: rping's server writes as far as its end.
        for (std::size_t i = 0; i < source.size(); ++i)
            source.data()[i] =
                static_cast<std::uint8_t>('A' + (i + static_cast<unsigned>(round)) % 26);
        source.data()[source.size() - 1] = 0;
        talk.say(advertise(source));
        talk.hear();
        talk.say(advertise(sink));
        talk.hear();
        DAT_REQUIRE(same(source.data(), sink.data(), source.size()), "other data came back");
    }
}

int server(const Transport& transport, int count, std::size_t size) {
    Side side(transport);
    side.listen();
    std::cout << "port " << side.port() << std::endl;
    const Event request = wait_event(side, FI_CONNREQ);
    Endpoint endpoint(side, request);
    Talk talk(endpoint);
    DAT_MUST(endpoint.accept());
    wait_event(side, FI_CONNECTED);
    serve_rounds(endpoint, talk, count, size);
    wait_shutdown(endpoint);
    require_end(endpoint, FI_DAT_END_DISCONNECTED);
    return 0;
}

// Connects when somebody listens: until then the attempts are refused.
void connect_at_last(Side& side, Endpoint& endpoint, const Bytes& destination) {
    for (int attempt = 0; attempt < 200; ++attempt) {
        DAT_MUST(endpoint.connect(destination));
        DAT_REQUIRE(wait_until([&] { return !side.events().empty(); }), "no event");
        const Event event = std::move(side.events().front());
        side.events().pop_front();
        if (event.type == FI_CONNECTED)
            return;
        DAT_REQUIRE(event.err == FI_ECONNREFUSED, error_name(event.err));
        DAT_MUST(endpoint.reset());
        settle(100);
    }
    DAT_REQUIRE(false, "nobody listens");
}

int client(const Transport& transport, const Bytes& destination, int count, std::size_t size) {
    Side side(transport);
    Endpoint endpoint(side);
    connect_at_last(side, endpoint, destination);
    Talk talk(endpoint);
    Region source(side, size, FI_REMOTE_READ);
    Region sink(side, size, FI_REMOTE_WRITE);
    ask_rounds(talk, source, sink, count);
    DAT_MUST(endpoint.disconnect(FI_DAT_GRACEFUL));
    wait_shutdown(endpoint);
    require_end(endpoint, FI_DAT_END_DISCONNECTED);
    return 0;
}

} // namespace
} // namespace dat::test

int main(int argc, char** argv) {
    using namespace dat::test;
    const bool serves = argc == 5 && std::strcmp(argv[1], "server") == 0;
    const bool asks = argc == 7 && std::strcmp(argv[1], "client") == 0;
    if (!serves && !asks) {
        std::fprintf(stderr, "usage: rping_peer server ADDRESS COUNT SIZE\n"
                             "       rping_peer client FROM TO PORT COUNT SIZE\n");
        return 2;
    }
    const int family = std::strchr(argv[2], ':') ? AF_INET6 : AF_INET;
    const char* kind = std::getenv("FI_DAT_TRANSPORT");
    const bool device = kind && std::strcmp(kind, "verbs") == 0;
    const Transport transport{"rping", false, family, argv[2], FI_PROGRESS_AUTO, device};
    const int count = std::atoi(argv[argc - 2]);
    const auto size = static_cast<std::size_t>(std::atoi(argv[argc - 1]));
    if (serves)
        return server(transport, count, size);
    const auto port = static_cast<std::uint16_t>(std::atoi(argv[4]));
    return client(transport, socket_address(argv[3], port), count, size);
}
