# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Open MPI over dat itself on one RDMA device, and over dat;ofi_rxm on another (test/mpi).
# suite_more.sh has it the other way round.

tests=(
    "300 two_processes_over_rxe__compute_right over_dat r0"
    "300 two_processes_over_rxm_on_siw__compute_right over_rxm_on_iwarp s0"
)

over_dat() { DAT_MPI_PROVIDERS=dat open_mpi "$@"; }
# A message of rxe has 8 MiB at most, and neither Open MPI nor ofi_rxm splits any.
over_rxm() { DAT_MPI_PROVIDERS='dat;ofi_rxm' DAT_MPI_MOST=8388608 open_mpi "$@"; }
over_rxm_on_iwarp() { DAT_MPI_IWARP=1 over_rxm "$@"; }

open_mpi() { # interface
    if [ ! -x "$DAT_BUILDDIR/test/mpi/mpi_suite" ]; then
        echo 'configure found no mpicxx (Debian: libopenmpi-dev)'
        return 77
    fi
    FI_DAT_IFACE=$1 DAT_MPI_LINKS=verbs DAT_MPI_RANKS=2 DAT_MPI_DYING=2 \
        DAT_MPI_LIMIT_S=200 bash "$DAT_SRCDIR/test/mpi/run.sh"
}
