// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Half a round trip of MPI between two processes, for each size the median of several
// batches, in microseconds: a line a size, "SIZE MEDIAN". mpi.sh runs it.
//
// The memory begins 16 bytes into a page, as that of malloc(3) does where it is large: what copies
// of it take depends on that (prov/dat/base/copy.h).
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

constexpr int kBatches = 15;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kIntoPage = 16;

class Buffer {
  public:
    explicit Buffer(std::size_t size) : bytes_(size + 2 * kPage, 'x') {}
    char* data() {
        const auto begin = reinterpret_cast<std::uintptr_t>(bytes_.data());
        return bytes_.data() + (kPage - begin % kPage) + kIntoPage;
    }

  private:
    std::vector<char> bytes_;
};

// Seconds for `times` round trips.
double batch(Buffer& buffer, int size, int times, int rank) {
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
        Buffer buffer(static_cast<std::size_t>(size));
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
