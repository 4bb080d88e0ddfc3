// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What a host itself allows between two processes: how fast a cache line and larger
// memory get from one processor to another. Each pattern is the least that something
// which moves messages has to do.
#ifndef DAT_UTIL_PERF_MEMORY_FLOOR_H
#define DAT_UTIL_PERF_MEMORY_FLOOR_H

#include "case.h"
#include "peer.h"

#include <cstddef>

namespace dat::perf {

// Memory that a process and its children share, zero at first.
class SharedMemory {
  public:
    explicit SharedMemory(std::size_t size);
    ~SharedMemory();
    SharedMemory(const SharedMemory&) = delete;
    SharedMemory& operator=(const SharedMemory&) = delete;

    char* data() const { return data_; }

  private:
    const std::size_t size_;
    char* const data_;
};

// How much of it memory_floor() needs for a case.
std::size_t shared_size(const Case& what);

// Of `what`, in a process of a pair that has `shared` from before it was made:
//   ping     a number in a cache line there and back; above 64 bytes the receiver also
//            copies so much out of shared memory
//   stream   up to 8 KiB: through a ring, copied in and out; above: process_vm_readv of
//            the other process's memory; read and write the same
//   read_one process_vm_readv
//   copy     memcpy, of the client alone
// Others are NotOffered.
Result memory_floor(const Case& what, Peer& peer, const SharedMemory& shared);

} // namespace dat::perf

#endif
