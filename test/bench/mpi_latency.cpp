// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Half a round trip of MPI between two processes, for each size the median of several
// batches, in microseconds: a line a size, "SIZE MEDIAN". mpi.sh runs it.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

namespace {

constexpr int kBatches = 15;

// Seconds for `times` round trips.
double batch(std::vector<char>& buffer, int size, int times, int rank) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int i = 0; i < times; ++i) {
        for (int turn = 0; turn < 2; ++turn) {
            if (turn == rank) {
                MPI_Send(buffer.data(), size, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD);
            } else {
                MPI_Recv(buffer.data(), size, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
            }
        }
    }
    return MPI_Wtime() - begin;
}

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (const int size : {1, 64, 1024, 16 * 1024, 64 * 1024, 1 << 20}) {
        std::vector<char> buffer(static_cast<std::size_t>(size), 'x');
        const int times = size <= 1024 ? 2000 : size <= 64 * 1024 ? 500 : 50;
        std::array<double, kBatches> taken;
        batch(buffer, size, times, rank); // connected, and warm
        for (double& each : taken) {
            each = batch(buffer, size, times, rank) / times / 2 * 1e6;
        }
        std::nth_element(taken.begin(), taken.begin() + kBatches / 2, taken.end());
        if (rank == 0) {
            std::printf("%d %.2f\n", size, taken[kBatches / 2]);
        }
    }
    MPI_Finalize();
    return 0;
}
