#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# MPI programs of others, which check what they compute, over the datagram endpoint of `dat`, over
# shared memory and TCP. Each needs a package of Debian.
#
#   programs.sh [hpcc|scalapack|mumps|mpi4py...]
#
#   hpcc       HPCC 1.5: HPL, PTRANS, RandomAccess, FFT and others, each with its check (hpcc)
#   scalapack  the test programs of ScaLAPACK and the BLACS (scalapack-mpi-test)
#   mumps      the test programs of MUMPS (mumps-test)
#   mpi4py     the benchmarks that mpi4py has in it (python3-mpi4py)
#
# DAT_BUILDDIR       the build folder whose provider is used; without it FI_PROVIDER_PATH is
# DAT_MPI_RANKS      processes of each (4)
# DAT_MPI_LINKS      "shm tcp"
# DAT_MPI_WITHOUT    ScaLAPACK's programs that are left out, a regular expression
# DAT_MPI_PROVIDERS  "dat"; or "dat;ofi_rxm", or both
# DAT_MPI_LIMIT_S    seconds after which a program counts as hung (240)
# DAT_MPI_ROOT       where the packages lie, if not in /
#
# A program that takes too long is ended, and its line says so.
# ScaLAPACK's xdsep fails one of its tests (N 27, 3 processes, type 10) about every second time over
# Open MPI's own transports, too, with the same residual: of ten runs each, 8 over its shared memory and 6
# over tcp;ofi_rxm, and 1 of 22 over its btl/tcp; xdsyevr does so seldom. Their FAIL is no sign of what
# dat does.
#
# Prints a line for each program, `ok ...`, `FAIL ...` or `skip ...` with its reason. Exit status 0 if
# nothing failed.
set -u

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../../util/common.sh"
limit=${DAT_MPI_LIMIT_S:-240}
ranks=${DAT_MPI_RANKS:-4}
root=${DAT_MPI_ROOT:-}
libraries=$root/usr/lib/$(gcc -print-multiarch)
[ -z "${DAT_BUILDDIR:-}" ] || FI_PROVIDER_PATH=$(cd "$DAT_BUILDDIR" && pwd)/.libs
[ -n "${FI_PROVIDER_PATH:-}" ] || { echo 'FAIL neither DAT_BUILDDIR nor FI_PROVIDER_PATH is set'; exit 1; }
[ -e "$FI_PROVIDER_PATH/libdat-fi.so" ] || { echo "FAIL $FI_PROVIDER_PATH holds no libdat-fi.so"; exit 1; }
export FI_PROVIDER_PATH
[ -z "$root" ] || export LD_LIBRARY_PATH=$libraries:$libraries/blas:$libraries/lapack:${LD_LIBRARY_PATH:-}

scratch=$(mktemp -d "${TMPDIR:-/tmp}/dat-mpi.XXXXXX") || exit 1
export TMPDIR=$scratch
running=
clean_up() {
    trap '' HUP INT TERM
    [ -z "$running" ] || end_session "$running"
    rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

failed=0
verdict() { # title status
    local title=$1
    if [ "$2" -eq 0 ]; then
        echo "ok $provider, $link: $1"
    else
        case $status in 124 | 137) title+=", ended after $limit s" ;; esac
        echo "FAIL $provider, $link: $title"
        tail -n 20 "$scratch/log"
        failed=1
    fi
}

# Runs a program in $scratch/run, and looks into what it has written. Sets `status`: 124 if it took too
# long, 137 if it had to be killed then. pml cm has nothing else to fall back on.
mpi() { # words...
    local start=(mpirun -np "$ranks" --oversubscribe --mca mpi_yield_when_idle 1
        --mca pml cm --mca mtl ofi --mca osc pt2pt
        --mca opal_common_ofi_provider_include "$provider" --mca opal_common_ofi_verbose 100
        -x FI_PROVIDER -x FI_PROVIDER_PATH -x FI_DAT_SHM)
    [ "$(id -u)" -ne 0 ] || start+=(--allow-run-as-root)
    [ -z "$root" ] || start+=(-x LD_LIBRARY_PATH)
    status=0
    (cd "$scratch/run" && exec setsid -w timeout -k 5 "$limit" "${start[@]}" "$@") \
        >"$scratch/log" 2>&1 </dev/null &
    running=$!
    wait "$running" || status=$?
    end_session "$running"
    # Each process has to have taken it.
    [ $status -ne 0 ] || [ "$(grep -cE "mtl:ofi:prov: $provider\$" "$scratch/log")" -ge "$ranks" ] ||
        { echo 'another provider was taken' >>"$scratch/log"; status=1; }
}

has() { # file package
    [ -e "$root$1" ] || { echo "skip $1 is not there (Debian: $2)"; return 1; }
}

# Small sizes: two rows by as many columns of processes as there are.
run_hpcc() {
    has /usr/bin/hpcc hpcc || return 0
    cat >hpccinf.txt <<-'END'
		HPLinpack benchmark input file
		Small
		HPL.out      output file name (if any)
		8            device out (6=stdout,7=stderr,file)
		1            # of problems sizes (N)
		600          Ns
		1            # of NBs
		64           NBs
		0            PMAP process mapping (0=Row-,1=Column-major)
		1            # of process grids (P x Q)
		2            Ps
		@COLUMNS@            Qs
		16.0         threshold
		1            # of panel fact
		2            PFACTs (0=left, 1=Crout, 2=Right)
		1            # of recursive stopping criterium
		4            NBMINs (>= 1)
		1            # of panels in recursion
		2            NDIVs
		1            # of recursive panel fact.
		1            RFACTs (0=left, 1=Crout, 2=Right)
		1            # of broadcast
		1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
		1            # of lookahead depth
		1            DEPTHs (>=0)
		2            SWAP (0=bin-exch,1=long,2=mix)
		64           swapping threshold
		0            L1 in (0=transposed,1=no-transposed) form
		0            U  in (0=transposed,1=no-transposed) form
		1            Equilibration (0=no,1=yes)
		8            memory alignment in double (> 0)
		##### This line (no. 32) is ignored (it serves as a separator). ######
		0            Number of additional problem sizes for PTRANS
		600          values of N
		0            number of additional blocking sizes for PTRANS
		64           values of NB
	END
    sed -i "s/@COLUMNS@/$((ranks / 2))/" hpccinf.txt
    mpi "$root/usr/bin/hpcc"
    grep -E 'FAILED|passed|Success' hpccoutf.txt >>"$scratch/log" 2>&1
    [ $status -eq 0 ] && grep -q '^Success=1' hpccoutf.txt && ! grep -q 'FAILED *$' hpccoutf.txt
    verdict 'HPCC' $?
}

run_scalapack() {
    local tests=$libraries/scalapack/openmpi-tests data=$root/usr/share/scalapack each
    has "${tests#"$root"}" scalapack-mpi-test || return 0
    cp -r "$data"/. .
    for each in "$tests"/x[dz]*; do
        [[ ! ${each##*/} =~ ^(${DAT_MPI_WITHOUT:-})$ ]] || continue
        # Not understood: it came to no end within its time, over Open MPI's own shared memory
        # (vader) either, in two runs of 60 and 100 s on a loaded machine.
        if [ "${each##*/}" = xdllt ]; then
            echo "skip ScaLAPACK's xdllt: it did not end in time over Open MPI's own shared memory either"
            continue
        fi
        mpi "$each"
        # What each ends with; xdhseqr and xdsvd say so otherwise.
        [ $status -eq 0 ] &&
            grep -qE 'END OF TESTS|End of tests|Finished *[0-9]* tests|^ *500 .* PASSED' "$scratch/log" &&
            ! grep -qE '[1-9][0-9]* tests? (completed and )?failed' "$scratch/log"
        verdict "ScaLAPACK's ${each##*/}" $?
    done
    # The BLACS'. Its last test is to end all processes with an error. Whether sums are repeatable it
    # tests where the order of some is not, which is so in one run and not in another.
    cp "$data"/BLACS/*.dat .
    mpi "$tests/xCbtest"
    [ $status -ne 0 ] && [ $status -ne 124 ] && [ $status -ne 137 ] &&
        grep -q 'final auxiliary test is for BLACS_ABORT' "$scratch/log" &&
        [ "$(grep -c ' TESTS;.* 0 FAILED' "$scratch/log")" -eq 22 ] &&
        [ "$(grep -cE '^ (PASSED|DONE) ' "$scratch/log")" -eq \
            $((8 + $(grep -c '^ PASSED  REPEATABLE SUM TEST' "$scratch/log"))) ] &&
        ! grep -q '^ FAILED  ' "$scratch/log" &&
        [ "$(grep -cE "mtl:ofi:prov: $provider\$" "$scratch/log")" -ge "$ranks" ]
    verdict "the BLACS' xCbtest" $?
}

run_mumps() {
    local tests=/usr/lib/mumps each input
    has $tests mumps-test || return 0
    for each in dsimpletest zsimpletest; do
        input=$root$tests/input_simpletest_real
        [ $each = dsimpletest ] || input=$root$tests/input_simpletest_cmplx
        # The first process reads it.
        mpi bash -c "exec '$root$tests/$each' <'$input'"
        [ $status -eq 0 ] && grep -qi 'solution is' "$scratch/log"
        verdict "MUMPS' $each" $?
    done
}

run_mpi4py() {
    has /usr/lib/python3/dist-packages/mpi4py python3-mpi4py || return 0
    [ -z "$root" ] || export PYTHONPATH=$root/usr/lib/python3/dist-packages
    local python=/usr/bin/python3
    mpi $python -m mpi4py.bench helloworld
    [ $status -eq 0 ] && [ "$(grep -c '^Hello, World! I am process' "$scratch/log")" -eq "$ranks" ]
    verdict "mpi4py's helloworld" $?
    mpi $python -m mpi4py.bench ringtest -n 100000 -l 20
    [ $status -eq 0 ] && grep -q "($ranks processes, 100000 bytes)" "$scratch/log"
    verdict "mpi4py's ringtest" $?
    # Not its pool of workers (mpi4py.futures): with Open MPI 4.1.4 it hangs over each provider of
    # libfabric, tcp;ofi_rxm too, in MPI_Iprobe of a message that was sent by MPI_Issend.
}

[ $# -gt 0 ] || set -- hpcc scalapack mumps mpi4py
for name; do
    case $name in
    hpcc | scalapack | mumps | mpi4py) ;;
    *) echo "no program is called '$name': hpcc, scalapack, mumps, mpi4py" >&2; exit 2 ;;
    esac
done
for link in ${DAT_MPI_LINKS:-shm tcp}; do
    FI_DAT_SHM=$([ "$link" = shm ] && echo 1 || echo 0)
    export FI_DAT_SHM
    for provider in ${DAT_MPI_PROVIDERS:-dat}; do
        export FI_PROVIDER=^ofi_rxm
        [ "$provider" = dat ] || FI_PROVIDER=dat
        for name; do
            rm -rf "$scratch/run"
            mkdir -p "$scratch/run"
            cd "$scratch/run" || exit 1
            "run_$name"
        done
    done
done
exit $failed
