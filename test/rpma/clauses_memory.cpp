// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Memory that is mapped from a file, written by a peer and flushed persistently. All who map a
// file, and all who read it, see the same pages, so that what a peer wrote is "in the file" for
// them before anything was flushed; nothing but a crash of the machine shows the difference. What
// makes it lasting is msync(2) with MS_SYNC, in the process whose memory it is. So this program
// has a function of that name, which libraries find before the C library's, and looks there at
// what it has to be: called before the flush completes, for all pages written, with the bytes in
// place. Where the pages of a file system are persistent memory themselves (MAP_SYNC), the caches
// of the processor are written back instead, by libpmem's pmem_persist(), of which the same is
// true; DAT_DAX_DIR names a folder of one.
#include "suite.h"

#include "config.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace dat::test;

namespace {

constexpr std::size_t kSize = 64 * 1024;
constexpr std::size_t kPage = 4096;

// What msync() was asked for. Called from the library's threads.
struct Seen {
    std::mutex lock;
    const char* begin = nullptr; // of the mapping that is looked at
    bool page[kSize / kPage] = {};
    char first[kSize / kPage] = {}; // byte 100 of each page as it was then
    int calls = 0;
    int fail_with = 0; // errno
};
Seen seen;

void start_to_look(const char* begin) {
    const std::lock_guard<std::mutex> guard(seen.lock);
    seen.begin = begin;
    seen.calls = 0;
    seen.fail_with = 0;
    std::memset(seen.page, 0, sizeof(seen.page));
}

int calls_seen() {
    const std::lock_guard<std::mutex> guard(seen.lock);
    return seen.calls;
}

bool was_synced(std::size_t page, char byte) {
    const std::lock_guard<std::mutex> guard(seen.lock);
    return seen.page[page] && seen.first[page] == byte;
}

} // namespace

// In sight of the libraries.
extern "C" __attribute__((visibility("default"))) int msync(void* address, std::size_t length,
                                                            int flags) {
    {
        const std::lock_guard<std::mutex> guard(seen.lock);
        const char* const from = static_cast<const char*>(address);
        if (seen.begin && from < seen.begin + kSize && from + length > seen.begin) {
            ++seen.calls;
            if (seen.fail_with) {
                errno = seen.fail_with;
                return -1;
            }
            for (std::size_t i = 0; i < kSize / kPage && (flags & MS_SYNC); ++i) {
                const char* const page = seen.begin + i * kPage;
                if (from <= page && page < from + length) {
                    seen.page[i] = true;
                    seen.first[i] = page[100];
                }
            }
        }
    }
    return static_cast<int>(syscall(SYS_msync, address, length, flags));
}

namespace {

// What pmem_persist() was asked for.
struct Persisted {
    std::mutex lock;
    const char* begin = nullptr;
    std::size_t size = 0;
    char first = 0; // byte of it, as it was then
    int calls = 0;
};
Persisted persisted;

} // namespace

// In sight of the libraries.
extern "C" __attribute__((visibility("default"))) void pmem_persist(const void* address,
                                                                    std::size_t length) {
    {
        const std::lock_guard<std::mutex> guard(persisted.lock);
        persisted.begin = static_cast<const char*>(address);
        persisted.size = length;
        persisted.first = *persisted.begin;
        ++persisted.calls;
    }
    static const auto real =
        reinterpret_cast<void (*)(const void*, std::size_t)>(dlsym(RTLD_NEXT, "pmem_persist"));
    real(address, length);
}

namespace {

// A file of a file system with pages, unlinked at once, and a mapping of it.
struct Mapping {
    explicit Mapping(int kind, const char* variable = "TMPDIR") {
        const char* const folder = std::getenv(variable);
        std::string name = std::string(folder && *folder ? folder : "/tmp") + "/rpma.XXXXXX";
        file = mkstemp(name.data());
        need(file >= 0 && ftruncate(file, kSize) == 0, "a file of " + name);
        unlink(name.c_str());
        void* const memory = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, kind, file, 0);
        need(memory != MAP_FAILED, "mmap of a file");
        bytes = static_cast<char*>(memory);
    }
    ~Mapping() {
        munmap(bytes, kSize);
        close(file);
    }
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;

    int file = -1;
    char* bytes = nullptr;
};

constexpr int kPersistent = RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC |
                            RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT |
                            RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;

// The remote side says that it writes to persistent memory directly.
void apply_direct_write(const Conn& conn) {
    rpma_peer_cfg* config = nullptr;
    NEED(rpma_peer_cfg_new(&config));
    NEED(rpma_peer_cfg_set_direct_write_to_pmem(config, true));
    NEED(rpma_conn_apply_remote_peer_cfg(conn, config));
    NEED(rpma_peer_cfg_delete(&config));
}

void write(Pair& pair, const Region& to, std::size_t offset, std::size_t length, char byte) {
    std::memset(pair.mine.bytes, byte, length);
    EXPECT_OK(rpma_write(pair.a, to.remote, offset, pair.mine.mr, 0, length,
                         RPMA_F_COMPLETION_ON_ERROR, nullptr));
}

void flush(Pair& pair, const Region& to, std::size_t offset, std::size_t length,
           rpma_flush_type type, std::uintptr_t context) {
    EXPECT_OK(rpma_flush(pair.a, to.remote, offset, length, type, RPMA_F_COMPLETION_ALWAYS,
                         context_of(context)));
}

} // namespace

// RP-19: a peer wrote into a file.
RPMA_TEST(rpma_file, written_by_a_peer__is_in_the_file) {
    Mapping mapping(MAP_SHARED);
    Pair pair;
    Region region(pair.peer, mapping.bytes, kSize, RPMA_MR_USAGE_WRITE_DST | kPersistent);
    write(pair, region, 3 * kPage + 10, 1000, 'f');
    flush(pair, region, 3 * kPage + 10, 1000, RPMA_FLUSH_TYPE_VISIBILITY, 1);
    cr_assert_eq(expect_wc(pair.a.cq(), IBV_WC_RDMA_READ, 1).byte_len, 8);
    char read_back[1000];
    cr_assert_eq(pread(mapping.file, read_back, 1000, 3 * kPage + 10), 1000);
    for (const char byte : read_back) {
        cr_assert_eq(byte, 'f');
    }
}

// RP-19: the pages are synced before the flush completes, with what was written before it.
RPMA_TEST(rpma_file, flushed_persistently__is_synced_before_the_completion) {
    Mapping mapping(MAP_SHARED);
    Pair pair(nullptr, nullptr, kSize);
    Region region(pair.peer, mapping.bytes, kSize, kPersistent);
    apply_direct_write(pair.a);
    for (int round = 1; round <= 5; ++round) {
        const char byte = static_cast<char>('A' + round);
        const std::size_t offset = static_cast<std::size_t>(round) * 2 * kPage + 50;
        const std::size_t length = 2 * kPage; // parts of three pages
        start_to_look(mapping.bytes);
        write(pair, region, offset, length, byte);
        flush(pair, region, offset, length, RPMA_FLUSH_TYPE_PERSISTENT,
              static_cast<std::uintptr_t>(round));
        expect_wc(pair.a.cq(), IBV_WC_RDMA_READ, static_cast<std::uint64_t>(round));
        for (std::size_t page = offset / kPage; page <= (offset + length - 1) / kPage; ++page) {
            // Byte 100 of the last one is behind what was written.
            const bool written = page * kPage + 100 < offset + length;
            cr_assert(was_synced(page, written ? byte : '\0'),
                      "page %zu was not synced, or before it was written", page);
        }
    }
}

// RP-19: visibility alone asks the disk for nothing.
RPMA_TEST(rpma_file, flushed_for_visibility__is_not_synced) {
    Mapping mapping(MAP_SHARED);
    Pair pair;
    Region region(pair.peer, mapping.bytes, kSize, kPersistent);
    start_to_look(mapping.bytes);
    write(pair, region, 0, 8, 'v');
    flush(pair, region, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, 1);
    expect_wc(pair.a.cq(), IBV_WC_RDMA_READ, 1);
    cr_assert_eq(calls_seen(), 0);
}

// RP-19: what could not be made lasting is not said to be.
RPMA_TEST(rpma_file, that_cannot_be_synced__fails_the_flush) {
    Mapping mapping(MAP_SHARED);
    Pair pair;
    Region region(pair.peer, mapping.bytes, kSize, kPersistent);
    apply_direct_write(pair.a);
    start_to_look(mapping.bytes);
    {
        const std::lock_guard<std::mutex> guard(seen.lock);
        seen.fail_with = EIO;
    }
    write(pair, region, 0, 8, 'e');
    flush(pair, region, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT, 1);
    const ibv_wc wc = next_of(pair.a.cq());
    cr_assert_eq(wc.wr_id, 1);
    cr_assert_neq(wc.status, IBV_WC_SUCCESS);
    cr_assert_geq(calls_seen(), 1);
}

// RP-19: a mapping of its own, or of no file, has nothing that could last: its descriptor does not
// offer it, and who asks for it is told.
RPMA_TEST(rpma_file, of_nobody_else__cannot_be_persistent) {
    Pair pair;
    Mapping own(MAP_PRIVATE);
    apply_direct_write(pair.a);
    void* const none =
        mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(none != MAP_FAILED, "mmap");
    for (void* memory : {static_cast<void*>(own.bytes), none}) {
        Region region(pair.peer, memory, kSize, kPersistent);
        int flush_type = 0;
        EXPECT_OK(rpma_mr_remote_get_flush_type(region.remote, &flush_type));
        cr_assert_eq(flush_type, RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY);
        EXPECT_RESULT(rpma_flush(pair.a, region.remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT,
                                 RPMA_F_COMPLETION_ALWAYS, nullptr),
                      RPMA_E_NOSUPP);
        flush(pair, region, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, 1);
        expect_wc(pair.a.cq(), IBV_WC_RDMA_READ, 1);
    }
    munmap(none, kSize);
}

// RP-19, RP-20: the way that a log is written: data, flush, and the word that says so.
RPMA_TEST(rpma_file, data_flush_and_atomic_write__are_in_order) {
    Mapping mapping(MAP_SHARED);
    Pair pair;
    Region region(pair.peer, mapping.bytes, kSize, kPersistent);
    apply_direct_write(pair.a);
    start_to_look(mapping.bytes);
    write(pair, region, kPage, 200, 'd');
    flush(pair, region, kPage, 200, RPMA_FLUSH_TYPE_PERSISTENT, 1);
    const char word[8] = {'w', 'o', 'r', 'd', 'w', 'o', 'r', 'd'};
    EXPECT_OK(rpma_atomic_write(pair.a, region.remote, 0, word, RPMA_F_COMPLETION_ON_ERROR,
                                context_of(2)));
    flush(pair, region, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT, 3);
    expect_wc(pair.a.cq(), IBV_WC_RDMA_READ, 1);
    cr_assert(was_synced(1, 'd'));
    expect_wc(pair.a.cq(), IBV_WC_RDMA_READ, 3);
    cr_assert(was_synced(0, '\0'));
    cr_assert_eq(std::memcmp(mapping.bytes, word, 8), 0);
}

// RP-19: of persistent memory itself the processor's caches are written back, and nothing is
// synced.
RPMA_TEST(rpma_file, on_dax__is_written_back_before_the_completion) {
    Mapping mapping(MAP_SHARED_VALIDATE | MAP_SYNC, "DAT_DAX_DIR");
    Pair pair;
    Region region(pair.peer, mapping.bytes, kSize, kPersistent);
    int flush_type = 0;
    EXPECT_OK(rpma_mr_remote_get_flush_type(region.remote, &flush_type));
    cr_assert(flush_type & RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT);
    apply_direct_write(pair.a);
    start_to_look(mapping.bytes);
    write(pair, region, kPage + 10, 300, 'p');
    flush(pair, region, kPage + 10, 300, RPMA_FLUSH_TYPE_VISIBILITY, 1);
    expect_wc(pair.a.cq(), IBV_WC_RDMA_READ, 1);
    flush(pair, region, kPage + 10, 300, RPMA_FLUSH_TYPE_PERSISTENT, 2);
    expect_wc(pair.a.cq(), IBV_WC_RDMA_READ, 2);
#ifdef HAVE_LIBPMEM
    const std::lock_guard<std::mutex> guard(persisted.lock);
    cr_assert_eq(persisted.calls, 1, "once, and not for visibility");
    cr_assert_eq(persisted.begin, mapping.bytes + kPage + 10);
    cr_assert_eq(persisted.size, 300);
    cr_assert_eq(persisted.first, 'p', "before it was written");
    cr_assert_eq(calls_seen(), 0, "a sync of what needs none");
#else
    cr_assert(was_synced(1, 'p'), "the kernel was to write the caches back");
#endif
}
