// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See segment.h.
#include "links/shm/segment.h"

#include "base/attempt.h"
#include "engine/kernel.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace dat::shm {

namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

} // namespace

Segment Segment::map(int fd, int& error, std::size_t count) {
    const std::size_t size = count * sizeof(Layout);
    void* mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) {
        error = -errno;
        return {};
    }
    Segment segment;
    if (!base::attempt([&] { // which unmaps it where there is no memory for this
            segment.layouts_.reset(static_cast<Layout*>(mapped),
                                   [size](Layout* layouts) { munmap(layouts, size); });
        })) {
        error = -ENOMEM;
    }
    return segment;
}

Segment Segment::create(int& fd, int& error, std::size_t count) {
    fd = memfd_create("dat", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        error = -errno;
        return {};
    }
    // Sealed, since a mapping of what is cut off ends its process (SIGBUS).
    if (ftruncate(fd, static_cast<off_t>(count * sizeof(Layout))) == 0 &&
        fcntl(fd, F_ADD_SEALS, kSeals) == 0) {
        if (Segment segment = map(fd, error, count)) {
            return segment;
        }
    } else {
        error = -errno;
    }
    kernel::close(std::exchange(fd, -1));
    return {};
}

Segment Segment::adopt(int fd, int& error, std::size_t count) {
    // The seals come first: what has some is memory of the kernel's, and nobody's file system
    // is asked.
    struct stat status {};
    const int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd, &status) != 0 ||
        status.st_size != static_cast<off_t>(count * sizeof(Layout))) {
        error = -EBADF;
        return {};
    }
    return map(fd, error, count);
}

namespace {

// Gives it back to the kernel, which makes it zero.
void empty(std::byte* from, std::byte* to) {
    const auto size = static_cast<std::size_t>(to - from);
    if (madvise(from, size, MADV_REMOVE) != 0) {
        std::memset(from, 0, size);
    }
}

// There was one, in the record that is the last of the page, or a payload beside the records.
bool reaches_beyond(const Records<Record>& records) {
    bool beyond = records[kFirstRecords - 1].stamp.load(std::memory_order_relaxed) != 0;
    for (std::size_t i = 0; i < kFirstRecords; ++i) {
        beyond = beyond || (records[i].flags & kInRing) != 0;
    }
    return beyond;
}

} // namespace

// A connection of few messages touches one page, as it is (segment.h).
void Segment::renew(std::size_t index) const {
    Layout& layout = layouts_.get()[index];
    const Side sides = side(true, index);
    auto* const all = reinterpret_cast<std::byte*>(&layout);
    std::byte* const page = all + offsetof(Layout, control) - kFirstRecords * sizeof(Record);
    if (reaches_beyond(sides.out) || reaches_beyond(side(false, index).out)) {
        empty(all, page);
        empty(page + kPage, all + offsetof(Layout, doorbells) / kPage * kPage);
        // The last page of the bytes has the doorbells behind it.
    }
    std::memset(page, 0, kPage);
}

Side Segment::side(bool initiator, std::size_t index) const {
    const std::size_t own = initiator ? 0 : 1;
    const std::size_t other = 1 - own;
    Layout& l = layouts_.get()[index];
    const std::array<Records<Record>, 2> records{
        Records<Record>(l.of_initiator.data(), kRecords - kFirstRecords),
        Records<Record>(l.of_responder.data(), 0)};
    return {&l.control[own], &l.control[other],   records[own],
            records[other],  l.bytes[own].data(), l.bytes[other].data()};
}

} // namespace dat::shm
