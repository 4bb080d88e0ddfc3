// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A connect over siw to a responder that replies before it looks at the stream, as siw does:
// it is told again that it may send, until it is heard of. A plain program; exit status 0: all
// held.
//
//   late_peer ADDRESS    of siw
#include "../transport/iwarp_bytes.h"
#include "../transport/plain.h"

#include <netinet/in.h>

#include <cstdio>

namespace dat::test {
namespace {

constexpr std::uint16_t kDepth = 8;

bool says_ready(const raw::Segment& segment) {
    return segment.tagged && segment.opcode == raw::kWrite && segment.payload.empty();
}

void run(const Transport& transport) {
    Side side(transport);
    raw::Listener listener(transport);
    Endpoint endpoint(side);
    DAT_MUST(fi_connect(endpoint.get(), listener.address(), nullptr, 0));
    raw::Socket socket = listener.accept();
    raw::read_mpa(socket);
    socket.write(encode(raw::Mpa{true, raw::kEnhanced, 2, raw::enhanced(kDepth, kDepth)}));
    wait_event(side, FI_CONNECTED);
    std::uint8_t in = 0;
    Op& receive = endpoint.recv(&in, 1);
    for (int time = 0; time < 2; ++time) {
        DAT_REQUIRE(says_ready(raw::read_segment(socket)), "another frame");
    }
    // Also where the program has sent something.
    const Bytes out = pattern(100);
    Op& sent = endpoint.send(out.data(), out.size());
    raw::Segment next = raw::read_segment(socket);
    while (says_ready(next)) {
        next = raw::read_segment(socket);
    }
    DAT_REQUIRE(next.opcode == raw::kSend && next.payload == out, "another frame");
    wait_op(sent);
    DAT_REQUIRE(says_ready(raw::read_segment(socket)), "another frame");
    socket.write(encode(raw::send(1, {9})));
    wait_op(receive);
    DAT_REQUIRE(receive.ok() && in == 9, "the message");
}

} // namespace
} // namespace dat::test

int main(int argc, char** argv) {
    using namespace dat::test;
    if (argc != 2) {
        std::fprintf(stderr, "usage: late_peer ADDRESS\n");
        return 2;
    }
    run(Transport{"siw", false, AF_INET, argv[1], FI_PROGRESS_MANUAL, true});
    return 0;
}
