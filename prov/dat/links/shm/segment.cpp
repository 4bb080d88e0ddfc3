// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See segment.h.
#include "links/shm/segment.h"

#include "base/attempt.h"
#include "engine/kernel.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace dat::shm {

namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

} // namespace

Segment Segment::map(int fd, int& error) {
    void* mapped = mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) {
        error = -errno;
        return {};
    }
    Segment segment;
    if (!base::attempt([&] { // which unmaps it where there is no memory for this
            segment.layout_.reset(static_cast<Layout*>(mapped),
                                  [](Layout* layout) { munmap(layout, sizeof(Layout)); });
        })) {
        error = -ENOMEM;
    }
    return segment;
}

Segment Segment::create(int& fd, int& error) {
    fd = memfd_create("dat", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        error = -errno;
        return {};
    }
    // Sealed, since a mapping of what is cut off ends its process (SIGBUS).
    if (ftruncate(fd, sizeof(Layout)) == 0 && fcntl(fd, F_ADD_SEALS, kSeals) == 0) {
        if (Segment segment = map(fd, error)) {
            return segment;
        }
    } else {
        error = -errno;
    }
    kernel::close(std::exchange(fd, -1));
    return {};
}

Segment Segment::adopt(int fd, int& error) {
    // The seals come first: what has some is memory of the kernel's, and nobody's file system
    // is asked.
    struct stat status {};
    const int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd, &status) != 0 ||
        status.st_size != static_cast<off_t>(sizeof(Layout))) {
        error = -EBADF;
        return {};
    }
    return map(fd, error);
}

Side Segment::side(bool initiator) const {
    const std::size_t own = initiator ? 0 : 1;
    const std::size_t other = 1 - own;
    Layout& l = *layout_;
    const std::array<Records<Record>, 2> records{
        Records<Record>(l.of_initiator.data(), kRecords - kFirstRecords),
        Records<Record>(l.of_responder.data(), 0)};
    return {&l.control[own], &l.control[other],   records[own],
            records[other],  l.bytes[own].data(), l.bytes[other].data()};
}

} // namespace dat::shm
