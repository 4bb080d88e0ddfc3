// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Closes what a stranger may have filled with descriptors of his. Where the last
// reference of such a descriptor goes, its file decides how long that takes: a TCP socket
// lingers, a file system of a user asks that user. So it goes in a thread that nothing
// waits for. Only where the kernel cannot keep descriptors out (local_socket.h).
#ifndef DAT_LINKS_SHM_REAPER_H
#define DAT_LINKS_SHM_REAPER_H

#include "net/socket.h"

#include <cstddef>
#include <memory>

namespace dat::shm {

class Reaper {
  public:
    Reaper();
    // What waits is still closed, whenever that is; nobody waits for it.
    ~Reaper();
    Reaper(const Reaper&) = delete;
    Reaper& operator=(const Reaper&) = delete;

    // Closes it soon, elsewhere; where no thread is to be had, now. Any thread.
    void take(net::Socket socket);
    // So many wait that no more should be let in. Any thread.
    bool full() const;

  private:
    struct Work;
    std::shared_ptr<Work> work_;
};

} // namespace dat::shm

#endif
