// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// An iWARP peer made of plain bytes and a plain socket: what the tests hold
// against the provider's own encoders. Written from the RFCs, with nothing of
// the provider. Reads poll every Side of the fixture meanwhile.
#ifndef DAT_TEST_TRANSPORT_IWARP_BYTES_H
#define DAT_TEST_TRANSPORT_IWARP_BYTES_H

#include "fixture.h"

namespace dat::test::raw {

// ---- sockets -------------------------------------------------------------

// A connected, non-blocking TCP socket without delay.
class Socket {
  public:
    explicit Socket(int fd) : fd_(fd) {}
    Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Socket& operator=(Socket&&) = delete;
    ~Socket() { close(); }

    static Socket connect(const Transport& transport, std::uint16_t port);

    void write(const Bytes& bytes);
    // One byte at a time, with the provider polled in between.
    void trickle(const Bytes& bytes);
    // Exactly `size` bytes; fails the test if they do not come.
    Bytes read(std::size_t size);
    // What is there now.
    Bytes read_available();
    // Waits until the peer's end of the stream, or its reset.
    void wait_end();
    // Polls for a while: nothing may come.
    void require_silent();

    void shutdown_write();
    void close();
    // Closes so that the peer's transport is reset.
    void reset();
    // The descriptor, which is the caller's to close from here on.
    int release() { return std::exchange(fd_, -1); }

  private:
    enum class Got { bytes, nothing, end };
    Got receive(Bytes& into, std::size_t limit);

    int fd_;
};

class Listener {
  public:
    explicit Listener(const Transport& transport);
    ~Listener();
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    const void* address() const { return address_.data(); }
    // Waits for a connection.
    Socket accept();

  private:
    int fd_;
    Bytes address_;
};

// ---- MPA, RFC 5044 7.1 and RFC 6581 9 ------------------------------------

// Bits of the flags byte.
inline constexpr std::uint8_t kMarkers = 0x80;
inline constexpr std::uint8_t kCrc = 0x40;
inline constexpr std::uint8_t kReject = 0x20;
inline constexpr std::uint8_t kEnhanced = 0x10;
inline constexpr std::uint8_t kDatRequest = 0x04; // how a `dat` request is known
inline constexpr std::uint8_t kDatReply = 0x02;   // and a reply
inline constexpr std::uint8_t kWide = 0x08;       // of either: fields of 8 bytes
// Control bits before IRD and ORD of an enhanced frame.
inline constexpr std::uint16_t kPeerToPeer = 0x8000; // with the IRD
inline constexpr std::uint16_t kRtrWrite = 0x8000;   // with the ORD

struct Mpa {
    bool reply = false;
    std::uint8_t flags = 0;
    std::uint8_t revision = 1;
    Bytes data; // private data; of an enhanced frame with the 4 bytes before it
};

Bytes encode(const Mpa& frame);
Mpa read_mpa(Socket& socket);
// The 4 bytes of an enhanced frame, then `data`.
Bytes enhanced(std::uint16_t ird_and_flags, std::uint16_t ord_and_flags, const Bytes& data = {});

// ---- FPDUs, DDP and RDMAP: RFC 5044 4, RFC 5041 4, RFC 5040 4 ------------

enum Opcode : std::uint8_t {
    kWrite = 0,
    kReadRequest = 1,
    kReadResponse = 2,
    kSend = 3,
    kTerminate = 7,
    kImmediate = 8, // RFC 7306
    kSendData = 12, // of `dat`, as the one below
    kHighData = 14,
};

struct Segment {
    bool tagged = false;
    bool last = true;
    std::uint8_t opcode = kSend;
    std::uint32_t stag = 0;   // untagged: the word of the upper layer
    std::uint64_t offset = 0; // tagged: TO; untagged: MO
    std::uint32_t queue = 0;  // untagged
    std::uint32_t msn = 1;    // untagged
    Bytes payload;
};

Bytes encode(const Segment& segment, bool crc = false);
// Checks length, padding, versions and, with `crc`, the CRC.
Segment read_segment(Socket& socket, bool crc = false);
Segment send(std::uint32_t msn, const Bytes& payload);
Segment write(std::uint32_t stag, std::uint64_t offset, const Bytes& payload);
// RFC 5040 4.4.
Segment read_request(std::uint32_t msn, std::uint32_t sink_stag, std::uint64_t sink_offset,
                     std::uint32_t size, std::uint32_t source_stag, std::uint64_t source_offset);
// Reads segments until a Terminate; layer << 12 | type << 8 | code of it (RFC 5040 4.8).
std::uint32_t read_terminate(Socket& socket, bool crc = false);
Segment terminate(std::uint32_t layer_type_code);

std::uint32_t get32(const Bytes& bytes, std::size_t at);
std::uint64_t get64(const Bytes& bytes, std::size_t at);

} // namespace dat::test::raw

#endif
