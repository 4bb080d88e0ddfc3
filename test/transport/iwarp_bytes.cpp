// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See iwarp_bytes.h.
#include "iwarp_bytes.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace dat::test::raw {

namespace {

constexpr std::size_t kKeySize = 16;
constexpr char kRequestKey[] = "MPA ID Req Frame";
constexpr char kReplyKey[] = "MPA ID Rep Frame";

void put(Bytes& bytes, std::uint64_t value, int size) {
    for (int shift = 8 * (size - 1); shift >= 0; shift -= 8)
        bytes.push_back(static_cast<std::uint8_t>(value >> shift));
}

void put(Bytes& bytes, const Bytes& more) { bytes.insert(bytes.end(), more.begin(), more.end()); }

std::uint64_t get(const Bytes& bytes, std::size_t at, std::size_t size) {
    DAT_REQUIRE(at + size <= bytes.size(), "a header that is too short");
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
        value = value << 8 | bytes[at + i];
    return value;
}

// CRC32C bit by bit: polynomial 0x1EDC6F41, reflected.
std::uint32_t crc32c(const Bytes& bytes) {
    std::uint32_t crc = 0xFFFFFFFF;
    for (const std::uint8_t byte : bytes) {
        crc ^= byte;
        for (int bit = 0; bit < 8; ++bit)
            crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78 : 0);
    }
    return ~crc;
}

// The CRC's least significant byte goes first (RFC 5044 4.4, as in iSCSI).
void put_crc(Bytes& frame, bool crc) {
    const std::uint32_t value = crc ? crc32c(frame) : 0;
    for (int shift = 0; shift < 32; shift += 8)
        frame.push_back(static_cast<std::uint8_t>(value >> shift));
}

const sockaddr* as_address(const Bytes& bytes) {
    return reinterpret_cast<const sockaddr*>(bytes.data());
}

int prepared(int fd) {
    DAT_REQUIRE(fd >= 0, std::strerror(errno));
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    DAT_MUST(fcntl(fd, F_SETFL, O_NONBLOCK));
    return fd;
}

} // namespace

std::uint32_t get32(const Bytes& bytes, std::size_t at) {
    return static_cast<std::uint32_t>(get(bytes, at, 4));
}

std::uint64_t get64(const Bytes& bytes, std::size_t at) { return get(bytes, at, 8); }

// ---- sockets -------------------------------------------------------------

Socket Socket::connect(const Transport& transport, std::uint16_t port) {
    const Bytes address = socket_address(transport.address, port);
    const int fd = ::socket(transport.family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    // The kernel completes this on loopback, whatever the listener does.
    DAT_MUST(::connect(fd, as_address(address), static_cast<socklen_t>(address.size())));
    return Socket(prepared(fd));
}

void Socket::write(const Bytes& bytes) {
    std::size_t sent = 0;
    const bool all = wait_until([&] {
        while (sent < bytes.size()) {
            const ssize_t n = ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
            if (n < 0)
                return errno != EAGAIN; // the peer has gone: reading shows it
            sent += static_cast<std::size_t>(n);
        }
        return true;
    });
    DAT_REQUIRE(all, "the peer does not read");
}

void Socket::trickle(const Bytes& bytes) {
    for (const std::uint8_t byte : bytes) {
        write({byte});
        pump_all();
    }
}

Socket::Got Socket::receive(Bytes& into, std::size_t limit) {
    const std::size_t had = into.size();
    into.resize(had + limit);
    const ssize_t n = ::recv(fd_, into.data() + had, limit, 0);
    into.resize(had + (n > 0 ? static_cast<std::size_t>(n) : 0));
    if (n > 0)
        return Got::bytes;
    return n < 0 && errno == EAGAIN ? Got::nothing : Got::end;
}

Bytes Socket::read(std::size_t size) {
    Bytes bytes;
    bool ended = false;
    const bool all = wait_until([&] {
        if (bytes.size() < size)
            ended = receive(bytes, size - bytes.size()) == Got::end;
        return ended || bytes.size() == size;
    });
    DAT_REQUIRE(all && !ended, (ended ? "the stream ended after " : "only got ") +
                                   std::to_string(bytes.size()) + " of " + std::to_string(size) +
                                   " bytes");
    return bytes;
}

Bytes Socket::read_available() {
    Bytes bytes;
    while (receive(bytes, 65536) == Got::bytes) {
    }
    return bytes;
}

void Socket::wait_end() {
    Bytes ignored;
    const bool ended = wait_until([&] { return receive(ignored, 65536) == Got::end; });
    DAT_REQUIRE(ended, "the peer keeps the connection open");
}

void Socket::require_silent() {
    settle();
    Bytes bytes;
    const Got got = receive(bytes, 65536);
    DAT_REQUIRE(got == Got::nothing, got == Got::end ? "the stream ended" : "bytes came");
}

void Socket::shutdown_write() { ::shutdown(fd_, SHUT_WR); }

void Socket::close() {
    if (fd_ >= 0)
        ::close(std::exchange(fd_, -1));
}

void Socket::reset() {
    const linger now{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
}

Listener::Listener(const Transport& transport)
    : fd_(prepared(::socket(transport.family, SOCK_STREAM | SOCK_CLOEXEC, 0))),
      address_(socket_address(transport.address, 0)) {
    auto size = static_cast<socklen_t>(address_.size());
    DAT_MUST(::bind(fd_, as_address(address_), size));
    DAT_MUST(::listen(fd_, 8));
    DAT_MUST(::getsockname(fd_, reinterpret_cast<sockaddr*>(address_.data()), &size));
}

Listener::~Listener() { ::close(fd_); }

Socket Listener::accept() {
    int fd = -1;
    const bool came = wait_until([&] {
        fd = ::accept(fd_, nullptr, nullptr);
        return fd >= 0;
    });
    DAT_REQUIRE(came, "nobody connects");
    return Socket(prepared(fd));
}

// ---- MPA -----------------------------------------------------------------

Bytes encode(const Mpa& frame) {
    const char* key = frame.reply ? kReplyKey : kRequestKey;
    Bytes bytes(key, key + kKeySize);
    bytes.push_back(frame.flags);
    bytes.push_back(frame.revision);
    put(bytes, frame.data.size(), 2);
    put(bytes, frame.data);
    return bytes;
}

Mpa read_mpa(Socket& socket) {
    const Bytes header = socket.read(kKeySize + 4);
    Mpa frame;
    frame.reply = std::memcmp(header.data(), kReplyKey, kKeySize) == 0;
    DAT_REQUIRE(frame.reply || std::memcmp(header.data(), kRequestKey, kKeySize) == 0,
                "not an MPA key");
    frame.flags = header[kKeySize];
    frame.revision = header[kKeySize + 1];
    frame.data = socket.read(get(header, kKeySize + 2, 2));
    return frame;
}

Bytes enhanced(std::uint16_t ird_and_flags, std::uint16_t ord_and_flags, const Bytes& data) {
    Bytes bytes;
    put(bytes, ird_and_flags, 2);
    put(bytes, ord_and_flags, 2);
    put(bytes, data);
    return bytes;
}

// ---- FPDUs ---------------------------------------------------------------

Bytes encode(const Segment& segment, bool crc) {
    constexpr int kVersion = 1;
    Bytes ulpdu;
    ulpdu.push_back(static_cast<std::uint8_t>((segment.tagged ? 0x80 : 0) |
                                              (segment.last ? 0x40 : 0) | kVersion));
    ulpdu.push_back(static_cast<std::uint8_t>(kVersion << 6 | segment.opcode));
    if (segment.tagged) {
        put(ulpdu, segment.stag, 4);
        put(ulpdu, segment.offset, 8);
    } else {
        put(ulpdu, segment.stag, 4); // of a send with invalidate, else reserved
        put(ulpdu, segment.queue, 4);
        put(ulpdu, segment.msn, 4);
        put(ulpdu, segment.offset, 4);
    }
    put(ulpdu, segment.payload);

    Bytes frame;
    put(frame, ulpdu.size(), 2);
    put(frame, ulpdu);
    while (frame.size() % 4 != 0)
        frame.push_back(0);
    put_crc(frame, crc);
    return frame;
}

Segment read_segment(Socket& socket, bool crc) {
    Bytes frame = socket.read(2);
    const std::size_t size = get(frame, 0, 2);
    DAT_REQUIRE(size >= 14, "a segment of " + std::to_string(size) + " bytes");
    put(frame, socket.read((2 + size + 3) / 4 * 4 - 2));
    for (std::size_t i = 2 + size; i < frame.size(); ++i)
        DAT_REQUIRE(frame[i] == 0, "padding that is not zero");
    Bytes expected;
    if (crc) {
        expected = frame;
        put_crc(expected, true);
    }
    put(frame, socket.read(4));
    DAT_REQUIRE(!crc || frame == expected, "a wrong CRC");

    Segment segment;
    DAT_REQUIRE((frame[2] & 3) == 1, "DDP version");
    DAT_REQUIRE(frame[3] >> 6 == 1, "RDMAP version");
    segment.tagged = (frame[2] & 0x80) != 0;
    segment.last = (frame[2] & 0x40) != 0;
    segment.opcode = frame[3] & 0xF;
    segment.stag = get32(frame, 4);
    std::size_t header = 2;
    if (segment.tagged) {
        segment.offset = get64(frame, 8);
        header += 14;
    } else {
        segment.queue = get32(frame, 8);
        segment.msn = get32(frame, 12);
        segment.offset = get32(frame, 16);
        header += 18;
        DAT_REQUIRE(size >= 18, "an untagged header that is too short");
    }
    const auto first = frame.begin() + static_cast<std::ptrdiff_t>(header);
    segment.payload.assign(first, frame.begin() + static_cast<std::ptrdiff_t>(2 + size));
    return segment;
}

Segment send(std::uint32_t msn, const Bytes& payload) {
    Segment segment;
    segment.msn = msn;
    segment.payload = payload;
    return segment;
}

Segment write(std::uint32_t stag, std::uint64_t offset, const Bytes& payload) {
    Segment segment;
    segment.tagged = true;
    segment.opcode = kWrite;
    segment.stag = stag;
    segment.offset = offset;
    segment.payload = payload;
    return segment;
}

Segment read_request(std::uint32_t msn, std::uint32_t sink_stag, std::uint64_t sink_offset,
                     std::uint32_t size, std::uint32_t source_stag, std::uint64_t source_offset) {
    Segment segment;
    segment.opcode = kReadRequest;
    segment.queue = 1;
    segment.msn = msn;
    put(segment.payload, sink_stag, 4);
    put(segment.payload, sink_offset, 8);
    put(segment.payload, size, 4);
    put(segment.payload, source_stag, 4);
    put(segment.payload, source_offset, 8);
    return segment;
}

std::uint32_t read_terminate(Socket& socket, bool crc) {
    for (;;) {
        const Segment segment = read_segment(socket, crc);
        if (segment.opcode != kTerminate)
            continue;
        DAT_REQUIRE(!segment.tagged && segment.queue == 2, "a Terminate is untagged, on queue 2");
        return static_cast<std::uint32_t>(get(segment.payload, 0, 2));
    }
}

Segment terminate(std::uint32_t layer_type_code) {
    Segment segment;
    segment.opcode = kTerminate;
    segment.queue = 2;
    put(segment.payload, layer_type_code, 2);
    put(segment.payload, 0, 2); // no headers of a segment follow
    return segment;
}

} // namespace dat::test::raw
