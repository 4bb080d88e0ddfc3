// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// An MPI program that checks what it is given: point-to-point, collectives, derived
// types, one-sided, communicators, wildcards. run.sh starts it.
//
//   mpi_suite [everything [BYTES [iwarp]]]
//                        rank 0 prints a line for each part; BYTES: of the largest message, 16
//                        MiB by default; iwarp: what an iWARP device can do
//   mpi_suite die        the last rank kills itself while the others wait for it
//   mpi_suite threads    threads of each rank call MPI at once; where that MPI offers it
//   mpi_suite spawn      the ranks start others, and all compute together
//
// Exit status 0 if all was right.
#include <mpi.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr int kMiB = 1 << 20;
using Bytes = std::vector<unsigned char>;

int g_rank = 0;
int g_ranks = 0;
int g_largest = 16 * kMiB; // bytes that one collective moves to a rank
bool g_iwarp = false;      // what cannot be there is left out
long g_wrong = 0;          // of the part that runs, here

// Counts, and says once in a part what is wrong.
void expect(bool good, const char* what, long a = 0, long b = 0) {
    if (!good && g_wrong++ == 0) {
        std::printf("rank %d: %s (%ld, %ld)\n", g_rank, what, a, b);
    }
}

// Byte `i` of message `tag` from rank `from`.
unsigned char pattern(int from, int tag, int i) {
    return static_cast<unsigned char>(from * 131 + tag * 29 + i * 3 + (i >> 8));
}

void fill(unsigned char* data, int size, int from, int tag) {
    for (int i = 0; i < size; ++i) {
        data[i] = pattern(from, tag, i);
    }
}

void check(const unsigned char* data, int size, int from, int tag, const char* what) {
    for (int i = 0; i < size; ++i) {
        if (data[i] != pattern(from, tag, i)) {
            expect(false, what, size, i);
            return;
        }
    }
}

int next() { return (g_rank + 1) % g_ranks; }
int previous() { return (g_rank + g_ranks - 1) % g_ranks; }

// What ofi_rxm does differently by size: inject, eager, segments, rendezvous.
const int kSizes[] = {0, 1, 63, 64, 1024, 16 * 1024, 16 * 1024 + 1, 65537, kMiB + 3, 4 * kMiB};

void blocking() {
    for (const int size : kSizes) {
        Bytes out(static_cast<std::size_t>(size)), in(out.size());
        fill(out.data(), size, g_rank, size);
        MPI_Status status;
        // In turns, so that a send that waits for its receive meets one.
        const auto send = [&] {
            MPI_Send(out.data(), size, MPI_BYTE, next(), size, MPI_COMM_WORLD);
        };
        const auto synchronous = [&] {
            (g_iwarp ? MPI_Send : MPI_Ssend)(out.data(), size, MPI_BYTE, next(), size,
                                             MPI_COMM_WORLD);
        };
        const auto receive = [&] {
            MPI_Recv(in.data(), size, MPI_BYTE, previous(), size, MPI_COMM_WORLD, &status);
            int count = -1;
            MPI_Get_count(&status, MPI_BYTE, &count);
            expect(count == size, "length of a message", count, size);
            check(in.data(), size, previous(), size, "contents of a message");
            std::fill(in.begin(), in.end(), static_cast<unsigned char>(0));
        };
        if (g_rank % 2 == 0) {
            send();
            receive();
            synchronous();
            receive();
        } else {
            receive();
            send();
            receive();
            synchronous();
        }
    }
}

void non_blocking() {
    constexpr int kEach = 8;
    for (const int size : kSizes) {
        const auto length = static_cast<std::size_t>(size);
        std::vector<Bytes> out(kEach, Bytes(length)), in(kEach, Bytes(length));
        std::vector<MPI_Request> requests;
        for (int i = 0; i < kEach; ++i) { // received by tag in the opposite order
            requests.emplace_back();
            MPI_Irecv(in[static_cast<std::size_t>(i)].data(), size, MPI_BYTE, previous(),
                      kEach - 1 - i, MPI_COMM_WORLD, &requests.back());
        }
        for (int i = 0; i < kEach; ++i) {
            auto& message = out[static_cast<std::size_t>(i)];
            fill(message.data(), size, g_rank, i);
            requests.emplace_back();
            MPI_Isend(message.data(), size, MPI_BYTE, next(), i, MPI_COMM_WORLD, &requests.back());
        }
        MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
        for (int i = 0; i < kEach; ++i) {
            check(in[static_cast<std::size_t>(i)].data(), size, previous(), kEach - 1 - i,
                  "contents of a non-blocking message");
        }
    }
}

// How long a message is, and from whom, before it is taken. ofi_rxm 1.17 never completes a
// receive that claims a message of several segments (16 to 128 KiB) as MPI_Mrecv does, over
// whichever provider that has it cut messages so; those are probed and received.
void probe() {
    for (const int size : {0, 5, 1000, 16000, 20000, 100000, kMiB}) {
        const bool segments = size > 16 * 1024 && size <= 128 * 1024;
        Bytes out(static_cast<std::size_t>(size));
        fill(out.data(), size, g_rank, 7);
        MPI_Request request;
        MPI_Isend(out.data(), size, MPI_BYTE, next(), 7, MPI_COMM_WORLD, &request);
        MPI_Status status;
        MPI_Probe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &status);
        int count = -1;
        MPI_Get_count(&status, MPI_BYTE, &count);
        expect(count == size && status.MPI_SOURCE == previous(), "what a probe says", count, size);
        Bytes in(static_cast<std::size_t>(std::max(count, 0)));
        if (segments) {
            MPI_Recv(in.data(), count, MPI_BYTE, previous(), 7, MPI_COMM_WORLD, &status);
        } else {
            MPI_Message message;
            MPI_Mprobe(previous(), MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status);
            MPI_Mrecv(in.data(), count, MPI_BYTE, &message, &status);
        }
        check(in.data(), count, previous(), 7, "contents of a probed message");
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

// A message longer than its receive is an error of that receive, and of nothing else.
void truncation() {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (const int size : {100, 8000}) {
        Bytes out(static_cast<std::size_t>(size)), in(out.size());
        fill(out.data(), size, g_rank, 1);
        MPI_Request requests[2];
        MPI_Isend(out.data(), size, MPI_BYTE, next(), 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out.data(), size, MPI_BYTE, next(), 2, MPI_COMM_WORLD, &requests[1]);
        MPI_Status status;
        const int error =
            MPI_Recv(in.data(), size / 2, MPI_BYTE, previous(), 1, MPI_COMM_WORLD, &status);
        int kind = MPI_SUCCESS;
        MPI_Error_class(error, &kind);
        expect(kind == MPI_ERR_TRUNCATE, "the error of a message that is too long", kind, size);
        MPI_Recv(in.data(), size, MPI_BYTE, previous(), 2, MPI_COMM_WORLD, &status);
        check(in.data(), size, previous(), 1, "the message behind one that was too long");
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

void broadcast_and_reduce(int size) {
    Bytes data(static_cast<std::size_t>(size));
    const int root = size % g_ranks;
    if (g_rank == root) {
        fill(data.data(), size, root, 3);
    }
    MPI_Bcast(data.data(), size, MPI_BYTE, root, MPI_COMM_WORLD);
    check(data.data(), size, root, 3, "MPI_Bcast");

    const int count = size / static_cast<int>(sizeof(int));
    std::vector<int> mine(static_cast<std::size_t>(count)), sum(mine.size(), -1);
    std::iota(mine.begin(), mine.end(), g_rank);
    const auto right = [&](const char* what) {
        const int ranks = g_ranks * (g_ranks - 1) / 2;
        for (int i = 0; i < count; ++i) {
            if (sum[static_cast<std::size_t>(i)] != ranks + i * g_ranks) {
                expect(false, what, size, i);
                return;
            }
        }
    };
    MPI_Allreduce(mine.data(), sum.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    right("MPI_Allreduce");
    std::fill(sum.begin(), sum.end(), -1);
    MPI_Reduce(mine.data(), sum.data(), count, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
    if (g_rank == root) {
        right("MPI_Reduce");
    }
}

// `size` is what all ranks together have.
void exchange(int size) {
    const int each = size / g_ranks;
    const auto part = [&](Bytes& all, int i) { return all.data() + std::ptrdiff_t{i} * each; };
    Bytes mine(static_cast<std::size_t>(each) * static_cast<std::size_t>(g_ranks));
    Bytes all(mine.size());
    fill(mine.data(), each, g_rank, 4);
    MPI_Allgather(mine.data(), each, MPI_BYTE, all.data(), each, MPI_BYTE, MPI_COMM_WORLD);
    for (int i = 0; i < g_ranks; ++i) {
        check(part(all, i), each, i, 4, "MPI_Allgather");
    }
    MPI_Gather(mine.data(), each, MPI_BYTE, all.data(), each, MPI_BYTE, 0, MPI_COMM_WORLD);
    // Each rank gets back from the root what it sent.
    MPI_Scatter(all.data(), each, MPI_BYTE, mine.data(), each, MPI_BYTE, 0, MPI_COMM_WORLD);
    check(mine.data(), each, g_rank, 4, "MPI_Gather and MPI_Scatter");
    for (int i = 0; i < g_ranks; ++i) {
        fill(part(mine, i), each, g_rank, i);
    }
    MPI_Alltoall(mine.data(), each, MPI_BYTE, all.data(), each, MPI_BYTE, MPI_COMM_WORLD);
    for (int i = 0; i < g_ranks; ++i) {
        check(part(all, i), each, i, g_rank, "MPI_Alltoall");
    }
}

void collectives() {
    for (const int size : {0, 8, 1000, 20000, 300000, kMiB, g_largest}) {
        broadcast_and_reduce(size);
        exchange(size);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

// A column of a matrix, a structure with a hole, and a piece of a block.
void derived_types() {
    constexpr int kRows = 500;
    constexpr int kColumns = 40;
    std::vector<int> matrix(kRows * kColumns), column(kRows, -1);
    std::iota(matrix.begin(), matrix.end(), g_rank);
    MPI_Datatype vector;
    MPI_Type_vector(kRows, 1, kColumns, MPI_INT, &vector);
    MPI_Type_commit(&vector);
    MPI_Sendrecv(&matrix[3], 1, vector, next(), 0, column.data(), kRows, MPI_INT, previous(), 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < kRows; ++i) {
        const int value = column[static_cast<std::size_t>(i)];
        expect(value == previous() + 3 + i * kColumns, "a column of a matrix", i, value);
    }
    MPI_Type_free(&vector);

    struct Particle {
        char kind;
        double place[3];
        int charge;
    };
    int lengths[] = {1, 3, 1};
    MPI_Aint places[] = {offsetof(Particle, kind), offsetof(Particle, place),
                         offsetof(Particle, charge)};
    MPI_Datatype types[] = {MPI_CHAR, MPI_DOUBLE, MPI_INT};
    MPI_Datatype packed, particle;
    MPI_Type_create_struct(3, lengths, places, types, &packed);
    MPI_Type_create_resized(packed, 0, sizeof(Particle), &particle);
    MPI_Type_commit(&particle);
    std::vector<Particle> out(1000), in(1000);
    for (std::size_t i = 0; i < out.size(); ++i) {
        out[i] = {'p', {1.5 * static_cast<double>(i), 2, 3}, g_rank};
    }
    MPI_Sendrecv(out.data(), 1000, particle, next(), 1, in.data(), 1000, particle, previous(), 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (std::size_t i = 0; i < in.size(); ++i) {
        expect(in[i].kind == 'p' && in[i].place[0] == 1.5 * static_cast<double>(i) &&
                   in[i].place[2] == 3 && in[i].charge == previous(),
               "a structure", static_cast<long>(i), in[i].charge);
    }
    MPI_Type_free(&packed);
    MPI_Type_free(&particle);
}

void one_sided() {
    constexpr int kEach = 4096;
    const std::size_t length = static_cast<std::size_t>(kEach) * static_cast<std::size_t>(g_ranks);
    std::vector<int> memory(length, -1), out(kEach), in(kEach, -1);
    MPI_Win window;
    MPI_Win_create(memory.data(), static_cast<MPI_Aint>(length * sizeof(int)), sizeof(int),
                   MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    for (int target = 0; target < g_ranks; ++target) {
        std::fill(out.begin(), out.end(), g_rank);
        MPI_Put(out.data(), kEach, MPI_INT, target, g_rank * kEach, kEach, MPI_INT, window);
    }
    MPI_Win_fence(0, window);
    for (std::size_t i = 0; i < length; ++i) {
        expect(memory[i] == static_cast<int>(i) / kEach, "MPI_Put", static_cast<long>(i),
               memory[i]);
    }
    MPI_Win_fence(0, window);
    MPI_Get(in.data(), kEach, MPI_INT, next(), previous() * kEach, kEach, MPI_INT, window);
    MPI_Win_fence(0, window);
    expect(in[0] == previous() && in[kEach - 1] == previous(), "MPI_Get", in[0], in[kEach - 1]);
    const int one = 1;
    MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, window);
    MPI_Win_fence(0, window);
    expect(g_rank != 0 || memory[0] == g_ranks, "MPI_Accumulate", memory[0], g_ranks);
    MPI_Barrier(MPI_COMM_WORLD);

    // Each adds to one number, under a lock.
    for (int i = 0; i < 10; ++i) {
        int before = -1;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
        MPI_Fetch_and_op(&one, &before, MPI_INT, 0, 1, MPI_SUM, window);
        MPI_Win_unlock(0, window);
        expect(before >= 0, "MPI_Fetch_and_op", before, i);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (g_rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
        expect(memory[1] == 10 * g_ranks, "sum of MPI_Fetch_and_op", memory[1], g_ranks);
        MPI_Win_unlock(0, window);
    }
    MPI_Win_free(&window);
}

// Each rank writes to the next one's memory without its doing, and tells a third one, which
// looks there.
void passive_target() {
    constexpr int kSizesHere[] = {1, 12, 13, 4096, 100000}; // numbers of doubles
    constexpr int kMost = 100000;
    double* memory = nullptr;
    MPI_Win window;
    MPI_Win_allocate(kMost * MPI_Aint{sizeof(double)}, sizeof(double), MPI_INFO_NULL,
                     MPI_COMM_WORLD, &memory, &window);
    std::fill(memory, memory + kMost, -1.0);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
    std::vector<double> out(kMost), in(kMost);
    const int third = (g_rank + 2) % g_ranks;
    const int of_third = (g_rank + g_ranks - 2) % g_ranks;
    const auto value = [](int rank, int size, int i) { return rank + size * 1e-3 + i; };
    for (const int size : kSizesHere) {
        for (int i = 0; i < size; ++i) {
            out[static_cast<std::size_t>(i)] = value(g_rank, size, i);
        }
        MPI_Put(out.data(), size, MPI_DOUBLE, next(), 0, size, MPI_DOUBLE, window);
        MPI_Win_flush(next(), window);
        int told = 0;
        MPI_Sendrecv(&size, 1, MPI_INT, third, 9, &told, 1, MPI_INT, of_third, 9, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        // What that rank has put lies at the one behind it.
        MPI_Request request;
        MPI_Rget(in.data(), size, MPI_DOUBLE, previous(), 0, size, MPI_DOUBLE, window, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 0; i < size; ++i) {
            const double got = in[static_cast<std::size_t>(i)];
            if (got != value(of_third, size, i)) {
                expect(false, "MPI_Put, MPI_Win_flush and MPI_Rget", size, i);
                break;
            }
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
}

// Many numbers at once, one that all compete for, and memory that is attached later.
void accumulation() {
    constexpr int kNumbers = 1000;
    std::vector<double> memory(kNumbers, 0.0), one(kNumbers, 1.0), before(kNumbers, -1.0);
    MPI_Win window;
    MPI_Win_create(memory.data(), kNumbers * MPI_Aint{sizeof(double)}, sizeof(double),
                   MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_lock_all(0, window);
    MPI_Get_accumulate(one.data(), kNumbers, MPI_DOUBLE, before.data(), kNumbers, MPI_DOUBLE, 0, 0,
                       kNumbers, MPI_DOUBLE, MPI_SUM, window);
    MPI_Win_flush(0, window);
    expect(before[0] >= 0 && before[0] < g_ranks && before[0] == before[kNumbers - 1],
           "MPI_Get_accumulate", static_cast<long>(before[0]), g_ranks);
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    expect(g_rank != 0 || (memory[0] == g_ranks && memory[kNumbers - 1] == g_ranks),
           "the sum of MPI_Get_accumulate", static_cast<long>(memory[0]), g_ranks);
    MPI_Win_free(&window);

    long number = 0;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_attach(window, &number, sizeof number);
    MPI_Aint at = 0;
    MPI_Get_address(&number, &at);
    MPI_Bcast(&at, 1, MPI_AINT, 0, MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
    for (int i = 0; i < 20; ++i) { // adds 1, by comparing and swapping
        long seen = 0;
        for (long expected = -1; seen != expected;) {
            expected = seen;
            const long wanted = expected + 1;
            MPI_Compare_and_swap(&wanted, &expected, &seen, MPI_LONG, 0, at, window);
            MPI_Win_flush(0, window);
        }
    }
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    if (g_rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
        expect(number == 20L * g_ranks, "the sum of MPI_Compare_and_swap", number, g_ranks);
        MPI_Win_unlock(0, window);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_detach(window, &number);
    MPI_Win_free(&window);
}

void communicators() {
    for (int round = 0; round < 3; ++round) {
        MPI_Comm half, again;
        MPI_Comm_split(MPI_COMM_WORLD, g_rank % 2, -g_rank, &half);
        MPI_Comm_dup(half, &again);
        int rank = -1, ranks = -1, sum = -1;
        MPI_Comm_rank(again, &rank);
        MPI_Comm_size(again, &ranks);
        MPI_Allreduce(&g_rank, &sum, 1, MPI_INT, MPI_SUM, again);
        int expected = 0;
        for (int i = g_rank % 2; i < g_ranks; i += 2) {
            expected += i;
        }
        expect(sum == expected, "sum within a part of the ranks", sum, expected);
        expect(rank == (ranks - 1) - g_rank / 2, "rank by the opposite key", rank, ranks);
        MPI_Comm_free(&half);
        MPI_Comm_free(&again);
    }
}

// Rank 0 takes 1,000 messages from anybody with any tag, none of which says beforehand
// how long it is.
void wildcards() {
    constexpr int kReceives = 1000;
    constexpr int kMost = 2000;
    const int senders = g_ranks - 1;
    const auto length = [](int tag) { return (tag * 37) % kMost; };
    if (g_rank != 0) {
        std::vector<Bytes> out;
        std::vector<MPI_Request> requests;
        for (int tag = g_rank - 1; tag < kReceives; tag += senders) {
            out.emplace_back(static_cast<std::size_t>(length(tag)));
            fill(out.back().data(), length(tag), g_rank, tag);
            requests.emplace_back();
            MPI_Isend(out.back().data(), length(tag), MPI_BYTE, 0, tag, MPI_COMM_WORLD,
                      &requests.back());
        }
        MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
        return;
    }
    std::vector<Bytes> in(kReceives, Bytes(kMost));
    std::vector<MPI_Request> requests(kReceives);
    std::vector<MPI_Status> statuses(kReceives);
    for (std::size_t i = 0; i < in.size(); ++i) {
        MPI_Irecv(in[i].data(), kMost, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                  &requests[i]);
    }
    MPI_Waitall(kReceives, requests.data(), statuses.data());
    std::vector<int> seen(kReceives);
    for (std::size_t i = 0; i < in.size(); ++i) {
        const int tag = statuses[i].MPI_TAG;
        int count = -1;
        MPI_Get_count(&statuses[i], MPI_BYTE, &count);
        const bool known = tag >= 0 && tag < kReceives;
        expect(known && count == length(tag), "length of a message from anybody", count, tag);
        if (known) {
            ++seen[static_cast<std::size_t>(tag)];
            check(in[i].data(), count, statuses[i].MPI_SOURCE, tag, "a message from anybody");
        }
    }
    expect(std::count(seen.begin(), seen.end(), 1) == kReceives, "each message arrives once");
}

// Threads of a rank exchange with those of its neighbours, each on a communicator of its own, and
// all on the same one, by their tags.
void threads() {
    constexpr int kThreads = 4;
    constexpr int kRounds = 100;
    MPI_Comm own[kThreads];
    for (MPI_Comm& each : own) {
        MPI_Comm_dup(MPI_COMM_WORLD, &each);
    }
    long wrong[kThreads] = {};
    const auto exchange = [&](int thread) {
        for (int round = 0; round < kRounds; ++round) {
            const int size = kSizes[static_cast<std::size_t>(round) % std::size(kSizes)];
            const int length = std::min(size, 65537);
            Bytes out(static_cast<std::size_t>(length)), in(out.size());
            fill(out.data(), length, g_rank, thread);
            MPI_Sendrecv(out.data(), length, MPI_BYTE, next(), thread, in.data(), length, MPI_BYTE,
                         previous(), thread, round % 2 == 0 ? MPI_COMM_WORLD : own[thread],
                         MPI_STATUS_IGNORE);
            for (int i = 0; i < length; ++i) {
                if (in[static_cast<std::size_t>(i)] != pattern(previous(), thread, i)) {
                    ++wrong[thread];
                    break;
                }
            }
            int sum = 0;
            MPI_Allreduce(&thread, &sum, 1, MPI_INT, MPI_SUM, own[thread]);
            wrong[thread] += sum != thread * g_ranks;
        }
    };
    std::vector<std::thread> all;
    for (int thread = 0; thread < kThreads; ++thread) {
        all.emplace_back(exchange, thread);
    }
    for (std::thread& each : all) {
        each.join();
    }
    for (int thread = 0; thread < kThreads; ++thread) {
        expect(wrong[thread] == 0, "what threads exchanged", thread, wrong[thread]);
        MPI_Comm_free(&own[thread]);
    }
}

constexpr int kSpawned = 2;

// Those that were there and those that were started, in one communicator.
void together(MPI_Comm between, bool started) {
    MPI_Comm all;
    MPI_Intercomm_merge(between, started, &all);
    int rank = -1, ranks = -1;
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &ranks);
    expect(!started || ranks > kSpawned, "ranks together", ranks, kSpawned);
    for (const int size : kSizes) {
        Bytes out(static_cast<std::size_t>(size)), in(out.size());
        fill(out.data(), size, rank, 5);
        const int from = (rank + ranks - 1) % ranks;
        MPI_Sendrecv(out.data(), size, MPI_BYTE, (rank + 1) % ranks, 5, in.data(), size, MPI_BYTE,
                     from, 5, all, MPI_STATUS_IGNORE);
        check(in.data(), size, from, 5, "what old and new ranks exchanged");
    }
    long sum = 0;
    MPI_Allreduce(&g_wrong, &sum, 1, MPI_LONG, MPI_SUM, all);
    g_wrong = sum;
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&between);
}

const char* g_program = nullptr;

void spawn() {
    char word[] = "spawned";
    char* words[] = {word, nullptr};
    MPI_Comm between;
    MPI_Comm_spawn(g_program, words, kSpawned, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between,
                   MPI_ERRCODES_IGNORE);
    together(between, false);
}

// Everybody waits for one that is no more: only mpirun can end this.
void die() {
    MPI_Barrier(MPI_COMM_WORLD);
    if (g_rank == g_ranks - 1) {
        std::raise(SIGKILL);
    }
    int never = 0;
    MPI_Recv(&never, 1, MPI_INT, g_ranks - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

struct Part {
    const char* name;
    void (*run)();
};

const Part kParts[] = {
    {"blocking", blocking},
    {"non-blocking", non_blocking},
    {"probe", probe},
    {"truncation error", truncation},
    {"collectives", collectives},
    {"derived types", derived_types},
    {"one-sided", one_sided},
    {"passive target", passive_target},
    {"accumulation", accumulation},
    {"communicators", communicators},
    {"1,000 wildcard receives", wildcards},
};

// Whether all ranks found all of it right.
bool run(const Part& part) {
    g_wrong = 0;
    part.run();
    long all = 0;
    MPI_Allreduce(&g_wrong, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (g_rank == 0) {
        std::printf("%s: %s\n", all == 0 ? "right" : "WRONG", part.name);
        std::fflush(stdout);
    }
    return all == 0;
}

} // namespace

int main(int argc, char** argv) {
    const std::string_view what = argc > 1 ? argv[1] : "everything";
    int offered = MPI_THREAD_SINGLE;
    if (what == "threads") { // with it some of Open MPI's one-sided communication is not offered
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &offered);
    } else {
        MPI_Init(&argc, &argv);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &g_ranks);
    if (g_ranks < 2) {
        std::printf("two processes are needed at least\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (what == "die") {
        die();
    }
    if (what == "threads" || what == "spawn" || what == "spawned") {
        bool good = true;
        if (what == "spawned") {
            MPI_Comm parent;
            MPI_Comm_get_parent(&parent);
            together(parent, true);
            good = g_wrong == 0;
        } else if (what == "threads" && offered < MPI_THREAD_MULTIPLE) {
            if (g_rank == 0) {
                std::printf("right: threads are not offered by this MPI\n");
            }
        } else {
            g_program = argv[0];
            good = run(what == "threads" ? Part{"threads", threads} : Part{"spawn", spawn});
        }
        MPI_Finalize();
        return good ? 0 : 1;
    }
    if (argc > 2) {
        g_largest = std::atoi(argv[2]);
    }
    g_iwarp = argc > 3 && std::string_view(argv[3]) == "iwarp";
    bool right = true;
    for (const Part& part : kParts) {
        if (g_iwarp && part.run == wildcards) {
            continue;
        }
        right = run(part) && right;
    }
    MPI_Finalize();
    return right ? 0 : 1;
}
