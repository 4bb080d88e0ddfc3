// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A small MPI program whose result is known: messages of many sizes go around
// a ring of ranks and every byte is checked on arrival; then the ranks add up
// what they found. Small sizes travel eagerly, large ones by rendezvous.
// Prints one line on rank 0; exit status 0 if all was right.
// Build and run: mpicc mpi_ring.c -o mpi_ring && mpirun -np 4 ./mpi_ring
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kRounds = 10 };

static const int kSizes[] = {0, 1, 7, 64, 1024, 4096, 16384, 65537, 1 << 20};
enum { kSizeCount = sizeof(kSizes) / sizeof(kSizes[0]) };

// What byte `i` of the message that `sender` sends in this round must be.
static unsigned char pattern(int sender, int size, int round, int i) {
    return (unsigned char)(sender * 131 + size * 17 + round * 7 + i * 3 + (i >> 8));
}

static void fill(unsigned char* data, int sender, int size, int round) {
    for (int i = 0; i < size; ++i) {
        data[i] = pattern(sender, size, round, i);
    }
}

// Returns the number of bytes that are not what `sender` sent.
static long check(const unsigned char* data, int sender, int size, int round) {
    long wrong = 0;
    for (int i = 0; i < size; ++i) {
        wrong += data[i] != pattern(sender, size, round, i);
    }
    return wrong;
}

// One message from every rank to the next. Returns the number of errors seen.
static long pass(unsigned char* out, unsigned char* in, int size, int round, int rank, int ranks) {
    const int next = (rank + 1) % ranks;
    const int previous = (rank + ranks - 1) % ranks;
    MPI_Status status;
    int received = -1;

    fill(out, rank, size, round);
    for (int i = 0; i < size; ++i) {
        in[i] = 0;
    }
    MPI_Sendrecv(out, size, MPI_BYTE, next, round, in, size, MPI_BYTE, previous, round,
                 MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &received);
    return check(in, previous, size, round) + (received != size);
}

int main(int argc, char** argv) {
    int rank = 0;
    int ranks = 0;
    long counts[2] = {0, 0}; // errors, bytes
    long totals[2] = {0, 0};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);

    unsigned char* out = malloc((size_t)kSizes[kSizeCount - 1]);
    unsigned char* in = malloc((size_t)kSizes[kSizeCount - 1]);
    if (!out || !in) {
        fprintf(stderr, "mpi_ring: rank %d: out of memory\n", rank);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int s = 0; s < kSizeCount; ++s) {
        for (int round = 0; round < kRounds; ++round) {
            counts[0] += pass(out, in, kSizes[s], round, rank, ranks);
            counts[1] += kSizes[s];
        }
    }
    MPI_Allreduce(counts, totals, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("mpi_ring: %d ranks, %d sizes, %d rounds, %ld bytes passed, %ld errors: %s\n", ranks,
               kSizeCount, kRounds, totals[1], totals[0], totals[0] ? "WRONG" : "ok");
    }
    free(out);
    free(in);
    MPI_Finalize();
    return totals[0] != 0;
}
