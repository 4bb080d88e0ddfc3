# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Open MPI over dat;ofi_rxm on an RDMA device (test/mpi).

tests=(
    "150 two_processes_over_rxe__compute_right open_mpi r0"
    "150 two_processes_over_siw__compute_right over_iwarp s0"
)

over_iwarp() { DAT_MPI_IWARP=1 open_mpi "$@"; }

# A message of rxe has 8 MiB at most, and Open MPI splits none.
open_mpi() { # interface
    if [ ! -x "$DAT_BUILDDIR/test/mpi/mpi_suite" ]; then
        echo 'configure found no mpicxx (Debian: libopenmpi-dev)'
        return 77
    fi
    FI_DAT_IFACE=$1 DAT_MPI_LINKS=verbs DAT_MPI_RANKS=2 DAT_MPI_DYING=2 DAT_MPI_MOST=8388608 \
        DAT_MPI_LIMIT_S=100 bash "$DAT_SRCDIR/test/mpi/run.sh"
}
