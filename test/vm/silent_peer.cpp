// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A connect that is not answered, over an RDMA device: it keeps nobody waiting who did not
// ask for that, wherever the device makes its connections. A plain program; exit status 0:
// all held.
//
//   silent_peer ADDRESS SILENT    an address of the device, and one that answers nothing
//   silent_peer ADDRESS           of an iWARP device: its peer takes the TCP connection
//                                 and answers nothing
#include "../transport/iwarp_bytes.h"
#include "../transport/plain.h"

#include <netinet/in.h>

#include <chrono>
#include <cstdio>

namespace dat::test {
namespace {

using Clock = std::chrono::steady_clock;

// TCP gives up after two minutes, and siw waits 10 s for an answer: what takes less has waited
// for neither.
constexpr std::chrono::seconds kSoon{5};

template <class Step> void soon(const char* what, Step&& step) {
    const Clock::time_point begun = Clock::now();
    step();
    const std::chrono::duration<double> taken = Clock::now() - begun;
    std::printf("%s: %.3f s\n", what, taken.count());
    DAT_REQUIRE(taken < kSoon, what);
}

void exchange(Endpoint& from, Endpoint& to) {
    Bytes sent = pattern(1000);
    Bytes got(sent.size());
    Op& receive = to.recv(got.data(), got.size());
    wait_op(from.send_confirmed(sent.data(), sent.size()));
    wait_op(receive);
    DAT_REQUIRE(got == sent, "the message");
}

// Receives that its endpoint shares are free with it.
void share_receives(const Transport& transport, const Bytes& silent) {
    Fid<fid_ep> srx;
    SideOptions options;
    options.before_enable = [&](fid_ep* ep) { DAT_MUST(fi_ep_bind(ep, &srx->fid, 0)); };
    Side side(transport, options);
    DAT_MUST(fi_srx_context(side.domain(), side.info()->rx_attr, srx.out(), nullptr));
    Bytes into(10);
    DAT_MUST(fi_recv(srx.get(), into.data(), into.size(), nullptr, FI_ADDR_UNSPEC, &new_op()));
    Endpoint lost(side);
    DAT_MUST(lost.connect(silent));
    settle(100);
    soon("fi_close() of one with shared receives", [&] { DAT_MUST(lost.close()); });
    soon("fi_close() of those", [&] { DAT_MUST(srx.close()); });
}

void run(const Transport& transport, const Bytes& silent) {
    Side side(transport);
    Side far(transport);
    far.listen();

    // EP-10: the call returns, and so does what moves the connection.
    Endpoint lost(side);
    soon("fi_connect()", [&] { DAT_MUST(lost.connect(silent)); });
    soon("progress", [] { settle(300); });
    require_state(lost, FI_DAT_ACTIVE_CONNECTION_PENDING);

    // Another connection of the same domain is made and carries data meanwhile.
    Endpoint active(side);
    std::optional<Endpoint> passive;
    soon("another connection", [&] {
        DAT_MUST(active.connect(far));
        passive.emplace(far, wait_event(far, FI_CONNREQ));
        DAT_MUST(passive->accept());
        wait_event(side, FI_CONNECTED);
        wait_event(far, FI_CONNECTED);
        exchange(active, *passive);
        exchange(*passive, active);
    });
    require_state(lost, FI_DAT_ACTIVE_CONNECTION_PENDING);

    // TMO-2: in time, and the endpoint can be used again.
    Endpoint timed(side);
    DAT_MUST(timed.dat()->set_connect_timeout(timed.get(), 1'000'000));
    soon("timeout", [&] {
        DAT_MUST(timed.connect(silent));
        DAT_REQUIRE(wait_error(side, FI_ETIMEDOUT).fid == timed.fid(), "another endpoint");
    });
    require_end(timed, FI_DAT_END_TIMED_OUT);
    soon("reset", [&] { DAT_MUST(timed.reset()); });
    soon("the same endpoint again", [&] {
        DAT_MUST(timed.connect(far));
        Endpoint other(far, wait_event(far, FI_CONNREQ));
        DAT_MUST(other.accept());
        wait_event(side, FI_CONNECTED);
        wait_event(far, FI_CONNECTED);
        exchange(timed, other);
        DAT_MUST(timed.disconnect(FI_DAT_GRACEFUL));
        wait_shutdown(timed);
        wait_shutdown(other);
    });

    // What is under way is broken off: by the program, and by the end of the endpoint.
    Endpoint aborted(side);
    DAT_MUST(aborted.connect(silent));
    settle(100);
    soon("disconnect", [&] {
        DAT_MUST(aborted.disconnect(FI_DAT_ABRUPT));
        DAT_REQUIRE(wait_until([&] { return !side.events().empty(); }), "no event");
        DAT_REQUIRE(side.events().front().ends(), "another event");
        side.events().clear();
    });
    soon("fi_close()", [&] { DAT_MUST(lost.close()); });
    exchange(active, *passive);
    share_receives(transport, silent);
    exchange(active, *passive);
}

} // namespace
} // namespace dat::test

int main(int argc, char** argv) {
    using namespace dat::test;
    if (argc != 2 && argc != 3) {
        std::fprintf(stderr, "usage: silent_peer ADDRESS [SILENT]\n");
        return 2;
    }
    const Transport device{"device", false, AF_INET, argv[1], FI_PROGRESS_MANUAL, true};
    if (argc == 3) {
        run(device, socket_address(argv[2], 7));
        return 0;
    }
    const raw::Listener listener(device);
    const auto* const at = static_cast<const std::uint8_t*>(listener.address());
    run(device, Bytes(at, at + sizeof(sockaddr_in)));
    return 0;
}
