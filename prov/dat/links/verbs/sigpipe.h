// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The SIGPIPE of a device. Linux's siw sends within the calls of the program, and raises the
// signal where the peer has closed the stream and the connection does not know yet; its
// default ends the program. Any thread.
#ifndef DAT_LINKS_VERBS_SIGPIPE_H
#define DAT_LINKS_VERBS_SIGPIPE_H

#include <cstdint>

struct ibv_qp;
struct ibv_send_wr;

namespace dat::verbs {

// As long as it lives, this thread gets no SIGPIPE; what is raised meanwhile never comes. On
// another device than siw nothing.
class NoSigpipe {
  public:
    explicit NoSigpipe(bool siw);
    ~NoSigpipe();
    NoSigpipe(const NoSigpipe&) = delete;
    NoSigpipe& operator=(const NoSigpipe&) = delete;

  private:
    const bool siw_;
    std::uint64_t before_ = 0; // the signals that the thread blocks, as the kernel has them
    bool pending_ = false;     // already: the program blocks it, and is to find it
};

// ibv_post_send(3) on siw; no point of cancellation, as is none of the next.
int post_to_siw(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad);
// ibv_post_send(3) on another device whose library makes a system call of it.
int post_uncancelled(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad);

} // namespace dat::verbs

#endif
