// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See scarce.h: who called, what fails, and the runs.
#include "scarce.h"

#include <dirent.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace dat::test {

namespace {

// --- who called ---

struct Range {
    std::uintptr_t begin;
    std::uintptr_t end;
    std::uintptr_t base;
    const char* name;
    bool ours; // of the library under test; else one that allocates for others
};
std::array<Range, 16> g_ranges;
std::atomic<std::size_t> g_range_count{0};
std::atomic<unsigned long long> g_modules_seen{0};

constexpr std::array kOurs{"libdat-fi.so", "libdat.so", "libdat2.so", "librpma.so"};
constexpr std::array kHelpers{"libstdc++.so", "libc.so", "libfabric.so", "ld-linux"};

template <std::size_t N>
const char* is_one_of(const char* name, const std::array<const char*, N>& of) {
    for (const char* each : of) {
        if (std::strncmp(name, each, std::strlen(each)) == 0) {
            return each;
        }
    }
    return nullptr;
}

void add_module(const dl_phdr_info& info) {
    const char* const slash = std::strrchr(info.dlpi_name, '/');
    const char* const file = slash ? slash + 1 : info.dlpi_name;
    const char* const ours = is_one_of(file, kOurs);
    const char* const name = ours ? ours : is_one_of(file, kHelpers);
    Range range{UINTPTR_MAX, 0, info.dlpi_addr, name, ours != nullptr};
    for (int i = 0; i < info.dlpi_phnum; ++i) {
        if (info.dlpi_phdr[i].p_type == PT_LOAD) {
            const std::uintptr_t at = info.dlpi_addr + info.dlpi_phdr[i].p_vaddr;
            const std::uintptr_t end = at + info.dlpi_phdr[i].p_memsz;
            range.begin = at < range.begin ? at : range.begin;
            range.end = end > range.end ? end : range.end;
        }
    }
    const std::size_t count = g_range_count;
    for (std::size_t i = 0; i < count; ++i) {
        if (g_ranges[i].begin == range.begin) {
            return;
        }
    }
    if (name && count < g_ranges.size()) {
        g_ranges[count] = range;
        g_range_count = count + 1;
    }
}

int look_at_module(dl_phdr_info* info, std::size_t, void* arg) {
    auto& first = *static_cast<bool*>(arg);
    if (first && info->dlpi_adds == g_modules_seen) {
        return 1; // no more than before
    }
    first = false;
    g_modules_seen = info->dlpi_adds;
    add_module(*info);
    return 0;
}

const Range* known(std::uintptr_t at) {
    for (std::size_t i = 0; i < g_range_count; ++i) {
        if (at - g_ranges[i].begin < g_ranges[i].end - g_ranges[i].begin) {
            return &g_ranges[i];
        }
    }
    return nullptr;
}

// nullptr: neither of the library nor of one that works for it.
const Range* range_of(std::uintptr_t at) {
    if (const Range* found = known(at)) {
        return found;
    }
    bool first = true;
    dl_iterate_phdr(look_at_module, &first);
    return known(at);
}

// So many frames above its caller's: a function of the C or C++ library may call another, or
// be called by a small one of libfabric, as fi_dupinfo(3) is.
constexpr int kDepth = 4;
struct Search {
    std::uintptr_t caller;
    int frames = -1; // above it; -1: not there yet
    std::uintptr_t found = 0;
};

_Unwind_Reason_Code look_at_frame(_Unwind_Context* context, void* arg) {
    auto& search = *static_cast<Search*>(arg);
    const std::uintptr_t at = _Unwind_GetIP(context);
    if (search.frames < 0) {
        search.frames = at == search.caller ? 0 : -1;
        return _URC_NO_REASON;
    }
    const Range* const range = range_of(at);
    if (range && range->ours) {
        search.found = at;
    }
    return range && !range->ours && ++search.frames < kDepth ? _URC_NO_REASON : _URC_NORMAL_STOP;
}

// Where in the library a call comes from; 0: it does not.
std::uintptr_t place_of(void* caller) {
    const auto at = reinterpret_cast<std::uintptr_t>(caller);
    const Range* const range = range_of(at);
    if (!range || range->ours) {
        return range ? at : 0;
    }
    Search search{at};
    _Unwind_Backtrace(look_at_frame, &search);
    return search.found;
}

// --- what fails ---

// Survives the process that runs, so that the one that watches it can say what failed.
struct Shared {
    long nth;
    bool over;
    int wrong;
    char what[32];
    char where[32];
    std::uintptr_t offset;
    bool missing; // what was refused has to be there, and has not been asked for again
};
Shared* g_shared = nullptr;

std::atomic<int> g_resource{-1}; // -1: nothing is scarce
std::atomic<long> g_left{0};
std::atomic<bool> g_and_on{false};
std::atomic<bool> g_failed{false};
std::atomic<bool> g_unasked{false}; // the same, since has_just_failed() was called
thread_local bool t_busy = false;   // in here: what happens now is none of the library's

// Nothing stands in for one of these. Shared memory is done without, and so is a look at a file.
bool is_needed(const char* what) {
    for (const char* each : {"epoll_create1", "eventfd", "timerfd_create", "pthread_create"}) {
        if (std::strcmp(what, each) == 0) {
            return true;
        }
    }
    return false;
}

void note(const char* what, std::uintptr_t at) {
    const Range* const range = known(at);
    std::snprintf(g_shared->what, sizeof g_shared->what, "%s", what);
    std::snprintf(g_shared->where, sizeof g_shared->where, "%s", range ? range->name : "?");
    g_shared->offset = range ? at - range->base : at;
    g_shared->missing = is_needed(what);
}

// This is what failed, asked for again.
bool is_noted(const char* what, std::uintptr_t at) {
    const Range* const range = known(at);
    return at - (range ? range->base : 0) == g_shared->offset &&
           std::strcmp(what, g_shared->what) == 0;
}

// --- what is there ---

// What the library has allocated and not freed; open addressing, never emptied but by zeroes.
class Live {
  public:
    void add(void* memory, std::uintptr_t at) {
        const Lock lock(mutex_);
        for (std::size_t i = hash(memory), n = 0; n < kPlaces; ++n, i = (i + 1) % kPlaces) {
            if (!places_[i].memory || places_[i].memory == kGone) {
                places_[i] = {memory, at, old_};
                ++count_;
                return;
            }
        }
        std::abort();
    }
    void remove(void* memory) {
        const Lock lock(mutex_);
        for (std::size_t i = hash(memory), n = 0; n < kPlaces; ++n, i = (i + 1) % kPlaces) {
            if (!places_[i].memory) {
                return;
            }
            if (places_[i].memory == memory) {
                places_[i].memory = kGone;
                --count_;
                return;
            }
        }
    }
    long count() const { return count_; }
    // Prints where what has come since the last call was allocated.
    void show_new() {
        const Lock lock(mutex_);
        for (Place& place : places_) {
            if (place.memory && place.memory != kGone && place.age == old_) {
                const Range* const range = known(place.at);
                std::fprintf(stderr, "    left: allocated from %s+0x%zx\n",
                             range ? range->name : "?",
                             static_cast<std::size_t>(place.at - (range ? range->base : 0)));
            }
        }
        ++old_;
    }
    void begin_anew() { ++old_; }

  private:
    static constexpr std::size_t kPlaces = 1 << 16;
    static inline void* const kGone = &g_ranges;
    struct Lock {
        explicit Lock(pthread_mutex_t& mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
        ~Lock() { pthread_mutex_unlock(&mutex_); }
        pthread_mutex_t& mutex_;
    };
    struct Place {
        void* memory;
        std::uintptr_t at;
        unsigned age;
    };
    static std::size_t hash(void* memory) {
        return (reinterpret_cast<std::uintptr_t>(memory) >> 4) * 0x9e3779b97f4a7c15u >> 48;
    }
    pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
    std::array<Place, kPlaces> places_{};
    long count_ = 0;
    unsigned old_ = 0;
};
Live g_live;
std::atomic<bool> g_counts{false};

int entries(const char* folder) {
    int count = 0;
    DIR* const dir = opendir(folder);
    while (dir && readdir(dir)) {
        ++count;
    }
    closedir(dir);
    return count;
}

struct Inventory {
    long allocations = g_live.count();
    int descriptors = entries("/proc/self/fd");
    int threads = entries("/proc/self/task");
};

const char* g_name = "";

} // namespace

bool fails(Resource resource, void* caller, const char* what) {
    if (g_resource.load(std::memory_order_relaxed) != static_cast<int>(resource) || t_busy) {
        return false;
    }
    t_busy = true;
    bool fails = false;
    if (const std::uintptr_t at = place_of(caller)) {
        const long left = g_left.fetch_sub(1);
        fails = left == 1 || (left < 1 && g_and_on);
        if (left == 1) {
            note(what, at);
        } else if (!fails && left < 1 && is_noted(what, at)) {
            g_shared->missing = false;
        }
        if (fails) {
            g_failed = g_unasked = true;
        }
    }
    t_busy = false;
    return fails;
}

void made(void* memory, void* caller) {
    if (memory && g_counts.load(std::memory_order_relaxed) && !t_busy) {
        t_busy = true;
        if (const std::uintptr_t at = place_of(caller)) {
            g_live.add(memory, at);
        }
        t_busy = false;
    }
}

void gone(void* memory) {
    if (memory && g_counts.load(std::memory_order_relaxed)) {
        g_live.remove(memory);
    }
}

bool has_failed() { return g_failed; }
bool has_just_failed() { return g_unasked.exchange(false); }
void violation(const char* format, ...) {
    ++g_shared->wrong;
    std::fprintf(stderr, "%s, number %ld (%s for %s+0x%zx): ", g_name, g_shared->nth,
                 g_shared->what, g_shared->where, static_cast<std::size_t>(g_shared->offset));
    va_list args;
    va_start(args, format);
    std::vfprintf(stderr, format, args);
    va_end(args);
    std::fputc('\n', stderr);
}

bool waited_enough(const char* what, std::chrono::steady_clock::duration since) {
    // Where all that is asked for fails from now on nothing more may come.
    const bool stays_scarce = g_failed && g_and_on && g_resource >= 0;
    if (stays_scarce && since > std::chrono::milliseconds(50)) {
        return true;
    }
    if (since > std::chrono::seconds(20)) {
        violation("%s: nothing comes any more", what);
        return true;
    }
    return false;
}

namespace {

constexpr unsigned kLongest = 60; // seconds, for one run

void grow_scarce(Resource resource, long nth, bool and_on) {
    alarm(kLongest);
    g_failed = g_unasked = false;
    g_shared->nth = nth;
    g_left = nth;
    g_and_on = and_on;
    g_resource = static_cast<int>(resource);
}

// Returns whether anything has failed.
bool plenty_again() {
    g_resource = -1;
    return g_failed.exchange(false);
}

// Whether as much is there as before. `says`: a violation where it is not.
bool is_as(const Inventory& before, bool says) {
    // A thread that has been joined may take a moment to leave /proc, and one that closes what
    // strangers left may still have something.
    Inventory now;
    for (int i = 0; i < 5000 && now.threads != before.threads; ++i) {
        const timespec moment{0, 1'000'000};
        nanosleep(&moment, nullptr);
        now = Inventory();
    }
    const bool same = now.allocations == before.allocations &&
                      now.descriptors == before.descriptors && now.threads == before.threads;
    if (same || !says) {
        return same;
    }
    if (now.allocations != before.allocations) {
        violation("%ld allocations are left", now.allocations - before.allocations);
        g_live.show_new();
    }
    if (now.descriptors != before.descriptors) {
        violation("%d descriptors are left", now.descriptors - before.descriptors);
    }
    if (now.threads != before.threads) {
        violation("%d threads are left", now.threads - before.threads);
    }
    return false;
}

// One process: what follows on `load`, from g_shared->nth on.
void run_warm(Resource resource, bool and_on, Run run) {
    g_counts = true;
    for (int i = 0; i < 2; ++i) {
        if (!run()) {
            violation("the run fails where nothing does");
        }
    }
    for (long nth = g_shared->nth;; ++nth) {
        // What the C library makes at the first call of a kind, and keeps, is not left again.
        constexpr int kTimes = 3;
        bool failed = false;
        for (int time = 1; time <= kTimes; ++time) {
            g_live.begin_anew();
            const Inventory before;
            grow_scarce(resource, nth, and_on);
            const bool done = run();
            failed = plenty_again();
            if (!done && !failed) {
                violation("the run fails where nothing does");
            }
            if (done && failed && g_shared->missing) {
                violation("the run goes on without it");
            }
            if (failed && !run()) {
                violation("the next run fails, where nothing does any more");
            }
            if (is_as(before, time == kTimes)) {
                break;
            }
        }
        if (!failed) {
            g_shared->over = true;
            return;
        }
    }
}

// One process for each N: in it the library has not been called before.
void run_cold(Resource resource, bool and_on, Run load, Run run) {
    grow_scarce(resource, g_shared->nth, and_on);
    const bool done = load();
    const bool failed = g_failed;
    g_resource = -1;
    if (!done && !failed) {
        violation("the library does not load where nothing fails");
    }
    g_failed = failed && !done; // then libfabric goes on without the provider, for good
    if (!run() && !has_failed()) {
        violation("the first run fails, where nothing does any more");
    }
    g_shared->over = !failed;
}

// Runs `body` in processes until one says that it is over.
template <class Body> int repeat(Body&& body) {
    int wrong = 0;
    *g_shared = {};
    for (g_shared->nth = 1; !g_shared->over && wrong < 50; ++g_shared->nth) {
        g_shared->wrong = 0;
        g_shared->what[0] = g_shared->where[0] = '\0';
        const pid_t child = fork();
        if (child == 0) {
            alarm(kLongest);
            body();
            _exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        if (status != 0) {
            violation(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "it hangs"
                                                                         : "the process dies: %d",
                      status);
        }
        wrong += g_shared->wrong;
    }
    return wrong;
}

} // namespace

int sweep(const char* name, Run load, Run run) {
    g_shared = static_cast<Shared*>(
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    int wrong = 0;
    for (const Resource resource : {Resource::memory, Resource::systems}) {
        for (const bool and_on : {false, true}) {
            static std::array<char, 96> words;
            const char* const what = resource == Resource::memory ? "allocation" : "descriptor";
            timespec begin{};
            timespec end{};
            clock_gettime(CLOCK_MONOTONIC, &begin);
            g_name = words.data();
            std::snprintf(words.data(), words.size(), "%s: loading, %s%s", name, what,
                          and_on ? " and on" : "");
            long cold = 0;
            if (load && !and_on) {
                wrong += repeat([&] { run_cold(resource, and_on, load, run); });
                cold = g_shared->nth - 1;
            }
            std::snprintf(words.data(), words.size(), "%s: %s%s", name, what,
                          and_on ? " and on" : "");
            wrong += repeat([&] { run_warm(resource, and_on, run); });
            clock_gettime(CLOCK_MONOTONIC, &end);
            std::printf("%s: %ld while it loads, %ld in a run, %.1f s\n", words.data(), cold,
                        g_shared->nth - 1,
                        static_cast<double>(end.tv_sec - begin.tv_sec) +
                            static_cast<double>(end.tv_nsec - begin.tv_nsec) / 1e9);
            std::fflush(stdout);
        }
    }
    munmap(g_shared, sizeof(Shared));
    return wrong;
}

int sweep_links(bool& waits, Run load, Run run) {
    setenv("FI_LOG_PROV", "none", 0); // what is refused is logged, a thousand times
    setenv("FI_DAT_TRANSPORT", "soft", 1);
    int wrong = 0;
    for (const bool shm : {false, true}) {
        setenv("FI_DAT_SHM", shm ? "1" : "0", 1);
        for (const bool sleeping : {false, true}) {
            waits = sleeping;
            std::array<char, 64> name;
            std::snprintf(name.data(), name.size(), "%s, %s", shm ? "shared memory" : "TCP",
                          waits ? "waiting" : "polling");
            wrong += sweep(name.data(), shm || waits ? nullptr : load, run);
        }
    }
    return wrong;
}

} // namespace dat::test
