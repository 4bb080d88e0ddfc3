// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The other process of a test: one side of a connection, driven by lines on
// its standard input, each answered by one line. A plain program, so that it
// can be killed, stopped and put into another network namespace.
//
//   peer ADDRESS         the address to listen on or connect from; of an RDMA device
//                        where FI_DAT_TRANSPORT=verbs
//
//   listen               ok PORT
//   connect HOST PORT N  ok           with N bytes of private data
//   accept N             ok           the request that `event` has shown
//   reject N             ok
//   rounds COUNT HOST PORT    ok      so many connections, each ended here when a message
//                                     of 1 byte was sent and one has come, and reset
//   event                the next event: connreq N | connected N |
//                        shutdown END REASON | error ERR N | async WHAT
//   async                ok           asynchronous events are among them from here on
//   quiet                ok           if no event is waiting after a while
//   recv COUNT SIZE      ok           posts receives
//   send COUNT SIZE      ok           posts sends with FI_TRANSMIT_COMPLETE
//   solicited COUNT SIZE ok           the same with FI_DAT_SOLICITED
//   invalidate SIZE KEY  ok           posts a send with FI_DAT_INVALIDATE
//   region SIZE [WHICH]  ok ADDRESS KEY   which peers may read and write; read: read alone;
//                                     write: write alone; apart: in a zone of its own
//   write SIZE ADDRESS KEY, read SIZE ADDRESS KEY    ok    posts
//   add ADDRESS KEY      ok           posts an atomic addition to 8 bytes there
//   finish               results OK FLUSHED OTHER    when all have completed
//   why                  prov_errno of the OTHER that the last `finish` has shown last
//   first                ok           when the first operation has completed
//   timeout MICROSECONDS ok
//   disconnect graceful|abrupt    ok
//   reset, close         ok
//   quit
//
// A call that fails is answered by "failed RESULT"; ERR and RESULT are FI_E*.
// Sizes are checked against what arrived, contents against pattern(size). N of an event
// is followed by " wrong" where the data is not pattern(N).
#include "disguise.h"
#include "fixture.h"
#include "lines.h"

#include <netinet/in.h>
#include <rdma/fi_atomic.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>

namespace dat::test {

void fail(const char* file, int line, const std::string& message) {
    std::cout << "broken " << file << ':' << line << ": " << message << std::endl;
    std::_Exit(1);
}

namespace {

struct Buffer {
    Bytes bytes;
    Op* op = nullptr;
    bool checked = false; // arrived data has to be pattern(size)
};

class Peer {
  public:
    explicit Peer(const Transport& transport) : side_(transport), endpoint_(std::in_place, side_) {}

    // The answer to a command.
    std::string answer(const std::string& line);
    void pump() { pump_all(); }

  private:
    std::string event();
    std::string describe(const Event& event);
    std::string finish();
    std::string connection(const std::string& verb, std::istringstream& rest);
    std::string operation(const std::string& verb, std::istringstream& rest);
    void rounds(int count, const Bytes& to);
    void message(std::size_t size, std::uint64_t flags, std::uint64_t data);
    Buffer& buffer(std::size_t size, bool filled);

    Side side_;
    std::deque<Buffer> buffers_;
    int why_ = 0;
    std::vector<std::unique_ptr<Region>> regions_;
    std::optional<Event> request_;
    std::optional<Endpoint> endpoint_;
};

std::string result(long value) { return value == 0 ? "ok" : "failed " + std::to_string(-value); }

std::string size_of(const Bytes& data) {
    return std::to_string(data.size()) + (data == pattern(data.size()) ? "" : " wrong");
}

std::string Peer::describe(const Event& event) {
    std::ostringstream text;
    switch (event.type) {
    case FI_CONNREQ:
        text << "connreq " << size_of(event.data);
        break;
    case FI_CONNECTED:
        text << "connected " << size_of(event.data);
        break;
    case FI_SHUTDOWN: {
        const fi_dat_ep_status status = endpoint_->status();
        text << "shutdown " << status.end << ' ' << status.reason;
        break;
    }
    case FI_DAT_ASYNC_EVENT: {
        fi_eq_entry entry;
        std::memcpy(&entry, event.data.data(), sizeof entry);
        text << "async " << entry.data;
        break;
    }
    default:
        text << "error " << event.err << ' ' << size_of(event.data);
    }
    return text.str();
}

std::string Peer::event() {
    if (!wait_until([&] { return !side_.events().empty(); }))
        return "none";
    Event event = std::move(side_.events().front());
    side_.events().pop_front();
    const std::string text = describe(event);
    if (event.type == FI_CONNREQ)
        request_.emplace(std::move(event));
    return text;
}

std::string Peer::finish() {
    int ok = 0;
    int flushed = 0;
    int other = 0;
    for (Buffer& buffer : buffers_) {
        if (!wait_until([&] { return buffer.op->done(); }))
            return "unfinished";
        ok += buffer.op->ok();
        flushed += buffer.op->flushed();
        if (!buffer.op->ok() && !buffer.op->flushed()) {
            ++other;
            why_ = buffer.op->prov_errno;
        }
        if (buffer.checked && buffer.op->ok() && buffer.bytes != pattern(buffer.bytes.size()))
            return "wrong data";
    }
    buffers_.clear();
    std::ostringstream text;
    text << "results " << ok << ' ' << flushed << ' ' << other;
    return text.str();
}

Buffer& Peer::buffer(std::size_t size, bool filled) {
    Buffer& buffer = buffers_.emplace_back();
    buffer.bytes = filled ? pattern(size) : Bytes(size);
    buffer.checked = !filled;
    return buffer;
}

void Peer::rounds(int count, const Bytes& to) {
    for (; count > 0; --count) {
        Bytes byte(1);
        const Op& arrived = endpoint_->recv(byte.data(), byte.size());
        DAT_MUST(endpoint_->connect(to, pattern(4)));
        // InfiniBand's connection manager says a lost message again after 4 s, and again.
        wait_until([&] { return !side_.events().empty(); }, 60000);
        wait_event(side_, FI_CONNECTED);
        // Said again if there is no answer: siw replies first and makes itself ready
        // afterwards, and may miss what arrives in between until there is more.
        const Bytes first = pattern(1);
        for (int ms = 500; ms < 60000 && !arrived.done(); ms *= 2) {
            endpoint_->send(first.data(), first.size());
            wait_until([&] { return arrived.done(); }, ms);
        }
        DAT_REQUIRE(arrived.ok(), "no message");
        DAT_MUST(endpoint_->disconnect(FI_DAT_GRACEFUL));
        wait_event(side_, FI_SHUTDOWN);
        DAT_MUST(endpoint_->reset());
    }
}

std::string Peer::connection(const std::string& verb, std::istringstream& rest) {
    std::string word;
    std::size_t size = 0;
    if (verb == "listen") {
        side_.listen();
        return "ok " + std::to_string(side_.port());
    }
    if (verb == "async")
        return result(fi_domain_bind(side_.domain(), &side_.eq()->fid, FI_DAT_ASYNC));
    if (verb == "connect") {
        std::uint16_t port = 0;
        rest >> word >> port >> size;
        return result(endpoint_->connect(socket_address(word.c_str(), port), pattern(size)));
    }
    if (verb == "rounds") {
        int count = 0;
        std::uint16_t port = 0;
        rest >> count >> word >> port;
        rounds(count, socket_address(word.c_str(), port));
        return "ok";
    }
    if (verb == "accept") {
        rest >> size;
        endpoint_.emplace(side_, *request_);
        return result(endpoint_->accept(pattern(size)));
    }
    if (verb == "reject") {
        rest >> size;
        const Bytes data = pattern(size);
        return result(fi_reject(side_.pep(), request_->info->handle, data.data(), size));
    }
    if (verb == "timeout") {
        std::uint64_t timeout_us = 0;
        rest >> timeout_us;
        return result(endpoint_->dat()->set_connect_timeout(endpoint_->get(), timeout_us));
    }
    if (verb == "disconnect") {
        rest >> word;
        return result(endpoint_->disconnect(word == "graceful" ? FI_DAT_GRACEFUL : FI_DAT_ABRUPT));
    }
    if (verb == "reset")
        return result(endpoint_->reset());
    if (verb == "close")
        return result(endpoint_->close());
    return "what?";
}

// Posts a send with these flags.
void Peer::message(std::size_t size, std::uint64_t flags, std::uint64_t data) {
    Buffer& one = buffer(size, true);
    one.op = &new_op();
    const iovec iov{one.bytes.data(), size};
    const fi_msg msg{&iov, nullptr, 1, FI_ADDR_UNSPEC, one.op, data};
    DAT_MUST(post_when_possible([&] {
        return fi_sendmsg(endpoint_->get(), &msg, FI_COMPLETION | FI_TRANSMIT_COMPLETE | flags);
    }));
}

std::string Peer::operation(const std::string& verb, std::istringstream& rest) {
    std::size_t count = 0;
    std::size_t size = 0;
    if (verb == "region") {
        std::string which;
        rest >> size >> which;
        const std::uint64_t access = which == "read"    ? FI_REMOTE_READ
                                     : which == "write" ? FI_REMOTE_WRITE
                                                        : FI_REMOTE_READ | FI_REMOTE_WRITE;
        regions_.push_back(
            std::make_unique<Region>(side_, size, access, which == "apart" ? Bytes{1} : Bytes{}));
        const Remote remote = regions_.back()->at(0);
        return "ok " + std::to_string(remote.address) + ' ' + std::to_string(remote.key);
    }
    if (verb == "recv" || verb == "send") {
        rest >> count >> size;
        while (count-- > 0) {
            Buffer& one = buffer(size, verb == "send");
            one.op = verb == "send" ? &endpoint_->send_confirmed(one.bytes.data(), size)
                                    : &endpoint_->recv(one.bytes.data(), size);
        }
        return "ok";
    }
    if (verb == "solicited") {
        rest >> count >> size;
        while (count-- > 0)
            message(size, FI_DAT_SOLICITED, 0);
        return "ok";
    }
    if (verb == "invalidate") {
        std::uint64_t key = 0;
        rest >> size >> key;
        message(size, FI_DAT_INVALIDATE, key);
        return "ok";
    }
    if (verb == "write" || verb == "read") {
        Remote remote{};
        rest >> size >> remote.address >> remote.key;
        Buffer& one = buffer(size, verb == "write");
        one.op = verb == "write" ? &endpoint_->write_confirmed(one.bytes.data(), size, remote)
                                 : &endpoint_->read(one.bytes.data(), size, remote);
        return "ok";
    }
    if (verb == "add") {
        Remote remote{};
        rest >> remote.address >> remote.key;
        Buffer& one = buffer(8, true);
        one.op = &new_op();
        DAT_MUST(post_when_possible([&] {
            return fi_atomic(endpoint_->get(), one.bytes.data(), 1, nullptr, FI_ADDR_UNSPEC,
                             remote.address, remote.key, FI_UINT64, FI_SUM, one.op);
        }));
        return "ok";
    }
    return connection(verb, rest);
}

std::string Peer::answer(const std::string& line) {
    std::istringstream rest(line);
    std::string verb;
    rest >> verb;
    if (verb == "event")
        return event();
    if (verb == "finish")
        return finish();
    if (verb == "why")
        return std::to_string(why_);
    if (verb == "first")
        return wait_until([&] { return buffers_.front().op->done(); }) ? "ok" : "unfinished";
    if (verb == "quiet") {
        settle();
        return side_.events().empty() ? "ok" : describe(side_.events().front());
    }
    return operation(verb, rest);
}

} // namespace
} // namespace dat::test

int main(int argc, char** argv) {
    using namespace dat::test;
    if (argc != 2) {
        std::fprintf(stderr, "usage: peer ADDRESS\n");
        return 2;
    }
    const std::string address = argv[1];
    const int family = address.find(':') == std::string::npos ? AF_INET : AF_INET6;
    const char* kind = std::getenv("FI_DAT_TRANSPORT");
    const bool device = kind && std::string(kind) == "verbs";
    const Transport transport{"peer", false, family, argv[1], FI_PROGRESS_AUTO, device};
    Peer peer(transport);
    if (!disguise()) {
        std::fprintf(stderr, "DAT_PEER_AS=%s is not permitted\n", std::getenv("DAT_PEER_AS"));
        return 2;
    }
    serve_lines([&](const std::string& line) { return peer.answer(line); }, [&] { peer.pump(); });
    return 0;
}
