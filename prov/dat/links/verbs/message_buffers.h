// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Registered memory that the messages of a connection come into, and go out of, where nobody but
// the device is told of single operations: of an endpoint with an engine::MessageSink. Those that
// come lie in `kMessages` buffers, each of which is the device's until a message is in it and from
// give() on. Under the domain's lock.
#ifndef DAT_LINKS_VERBS_MESSAGE_BUFFERS_H
#define DAT_LINKS_VERBS_MESSAGE_BUFFERS_H

#include <cstddef>
#include <cstdint>
#include <memory>

struct ibv_mr;
struct ibv_pd;
struct ibv_qp;

namespace dat::verbs {

// Bytes of a message, at most; and how many may be on their way to one side. Both sides have to
// know them: who sends more finds no buffer, which on iWARP ends the connection.
inline constexpr std::size_t kMessageSize = 4096;
inline constexpr std::uint32_t kMessages = 32;

class MessageBuffers {
  public:
    // `outgoing`: of this side's messages. Kept until that is destroyed, behind the queue pair.
    // nullptr: errno.
    static std::unique_ptr<MessageBuffers> make(ibv_pd* pd, std::uint32_t outgoing);
    ~MessageBuffers();
    MessageBuffers(const MessageBuffers&) = delete;
    MessageBuffers& operator=(const MessageBuffers&) = delete;

    // The device may fill that one, or all of them; the completion has the work request id
    // receive_id(number). False: errno.
    bool give(ibv_qp* qp, std::uint32_t number);
    bool give_all(ibv_qp* qp);
    const std::byte* incoming(std::uint32_t number) const { return at(number); }
    std::byte* outgoing(std::uint32_t number) { return at(kMessages + number); }
    std::uint32_t key() const { return key_; } // the local one, of all of it

  private:
    explicit MessageBuffers(std::size_t size) : size_(size) {}
    std::byte* at(std::size_t number) const { return base_ + number * kMessageSize; }

    const std::size_t size_;
    std::byte* base_ = nullptr; // pages of its own: a child of fork(2) may be without them
    ibv_mr* mr_ = nullptr;
    std::uint32_t key_ = 0;
};

} // namespace dat::verbs

#endif
