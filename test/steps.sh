# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What test/run.sh does, one function a step; sourced by it, once for each step.
# A step speaks to its log (standard output), ends with 0 if all went well, and
# reports what it counted with the functions below. It may use:
#   $root    the source tree, never written to
#   $work    the temporary folder, removed at the end
#   $results the file that what it counts is added to
#   $jobs    how many processes make may run at once

. "$root/util/common.sh"

# --- counting ---------------------------------------------------------------

# Adds to the sums: passed, failed.
count() { echo "count $1 $2" >>"$results"; }

# One skipped test, with its reason.
count_skip() { echo "skip $*" >>"$results"; }

# One check of this script: runs it, counts it, passes its status on.
check() { # title command...
    local title=$1
    shift
    if "$@"; then
        echo "ok: $title"
        count 1 0
    else
        echo "FAILED: $title"
        count 0 1
        return 1
    fi
}

# Adds up what `make check` ran in build folder $1, from the record (.trs) that
# automake keeps of each test: a Criterion program counts for as many tests as
# its own synthesis says, and once more as failed if it failed although the
# synthesis names no failure (it crashed at its end, or leaked); any other
# program or script counts once.
count_make_check() {
    local trs log result name passed failed skipped
    while read -r trs; do
        log=${trs%.trs}.log
        name=${log#"$1"/}
        name=${name%.log}
        result=$(sed -n 's/^:global-test-result: //p' "$trs")
        read -r passed failed skipped < <(criterion_counts "$log")
        if [ "$result" = SKIP ]; then
            count_skip "$name: $(grep -v '^SKIP ' "$log" | tail -n 1)"
        elif [ $((passed + failed + skipped)) -eq 0 ]; then
            if [ "$result" = PASS ]; then count 1 0; else count 0 1; fi
        else
            if [ "$result" != PASS ] && [ "$failed" -eq 0 ]; then failed=1; fi
            count "$passed" "$failed"
            while [ "$skipped" -gt 0 ]; do
                count_skip "$name: a Criterion test skipped itself"
                skipped=$((skipped - 1))
            done
        fi
    done < <(find "$1" -name '*.trs' | sort)
}

# Prints passed, failed and skipped as Criterion sums them up in log $1.
criterion_counts() {
    awk '/^\[====\] Synthesis:/ {
             for (i = 1; i <= NF; i++) {
                 if ($i == "Tested:") tested += $(i + 1)
                 if ($i == "Passing:") passed += $(i + 1)
                 if ($i == "Failing:" || $i == "Crashing:") failed += $(i + 1)
             }
         }
         /^\[SKIP\]/ {skipped++}
         END {print passed + 0, failed + 0, skipped + 0}' "$1"
}

# --- building ---------------------------------------------------------------

# What runs beside a step that has less time to spare.
lowly() { renice -n 10 -p $BASHPID >/dev/null; }

# A compiler that does not read anew what many sources include of the C++ library.
precompiled() { echo "bash $root/test/precompiled.sh $work/headers $1"; } # compiler

# The same, which compiles several sources of a library or program at once.
batched() { # name-of-the-build compiler
    echo "bash $root/test/batched.sh $work/batches/$1 $(precompiled "$2")"
}

# Configures the unpacked distribution in build folder $1, and builds make target $4 with one
# compiler, and the tests and what else there is with another, and with flags of their own: of what they
# take to compile, most is their optimization, which proves nothing. The folders of one compiler
# share what configure found out. Where a line of the libraries came from is all that a log wants: whole
# debug information would be a quarter of the time, and in tests, whose messages have their place, lines
# alone are a fifth.
build() { # folder cache compiler target compiler-of-the-rest flags-of-the-rest options...
    local folder=$1 cache=$2 compiler=$3 target=$4 rest_compiler=$5 rest_flags=$6
    shift 6
    mkdir -p "$folder" && cd "$folder" &&
        "$work/source/configure" -q --cache-file="$work/$cache.cache" \
            --prefix="$work/prefix" --libdir="$work/prefix/lib" --enable-werror "$@" &&
        make -j"$jobs" CXX="$compiler" "$target" &&
        make -j"$jobs" check TESTS= CXX="$rest_compiler" CXXFLAGS="$rest_flags"
}

# Configures the unpacked distribution in build folder $1, and builds there what make target $2
# prints the names of.
build_parts() { # folder target compiler options...
    local folder=$1 target=$2 compiler=$3 parts
    shift 3
    mkdir -p "$folder" && cd "$folder" && "$work/source/configure" -q "$@" &&
        parts=$(make -s "$target") &&
        # Unquoted on purpose: one argument a part.
        make -j"$jobs" CXX="$compiler" $parts
}

# Runs the tests of build folder $1, and counts them. Has a limit of its own,
# below that of its step, so that what did run is counted in any case.
make_check() { # folder target make-arguments...
    local folder=$1 target=$2 status=0
    shift 2
    cd "$folder" || return 1
    # More than processors: tests of connections wait for much of their time.
    timeout -k 10 1500 make -j$((jobs * 2)) -k "$target" "$@" || status=1
    if [ -z "$(find . -name '*.trs')" ]; then
        echo 'no test was run'
        return 1
    fi
    count_make_check "$folder"
    [ $status -eq 0 ] || explain_make_check
    return $status
}

# Runs the tests whose names make target $2 prints, of what build_parts() has built and no more.
check_parts() { # folder target
    make_check "$1" check-TESTS check_LTLIBRARIES= check_PROGRAMS= check_SCRIPTS= \
        TESTS="$(make -s -C "$1" "$2")"
}

# Prints the end of what each test said that failed, or that was running when make was ended.
explain_make_check() {
    local log result
    find . -name '*.log' ! -name config.log ! -name test-suite.log | sort |
        while read -r log; do
            result=$(sed -n 's/^:global-test-result: //p' "${log%.log}.trs" 2>/dev/null)
            case $result in PASS | SKIP) continue ;; esac
            echo "FAIL ${log%.log}: ${result:-had not ended}"
            grep -v -e '^PASS' -e '^\[PASS\]' "$log" | tail -n 25 | sed 's/^/| /'
        done
}

# Of the provider; of a configuration that is cached they may not change.
release_flags='-O2 -g1'

# --- the steps, in the order of test/run.sh ---------------------------------

step_packages() {
    bash "$root/util/packages.sh" build run test vm
}

step_quick_packages() {
    bash "$root/util/packages.sh" build run quick
}

# The tests run on what a distribution holds, read-only, in build folders
# outside of it: a file that is missing from it, and a test that writes where it
# must not, are noticed.
step_distribution() {
    copy_source "$root" "$work/tree" && cd "$work/tree" && autoreconf -fi &&
        ./configure -q --cache-file="$work/g++.cache" CXXFLAGS="$release_flags" && make dist &&
        mkdir "$work/source" &&
        tar -C "$work/source" --strip-components=1 -xf dat-*.tar.gz && chmod -R a-w "$work/source"
}

step_release() {
    build "$work/release" g++ "$(precompiled g++)" all "$(batched release g++)" -O0 CXXFLAGS="$release_flags"
}

step_quick() {
    build_parts "$work/quick" dat-list-quick-parts "$(batched quick g++)" --enable-werror CXXFLAGS=-O0
}

step_quick_check() {
    check_parts "$work/quick" dat-list-quick-tests
}

step_release_check() {
    local status=0
    make_check "$work/release" check || status=1
    grep -hE '^(20|12): ' "$work/release/test/shim/clauses_table_test.log" |
        sed 's/^\(.\)\(.\): /note: clauses of uDAPL \1.\2: /'
    sed -n 's/^rpma: /note: rules of librpma: /p' "$work/release/test/rpma/clauses_table_test.log"
    return $status
}

step_install() {
    local prefix=$work/prefix status=0
    cd "$work/release" && make install || return 1
    find "$prefix" -type f | sort
    check 'installed files' installed_files "$prefix" || status=1
    check 'installed module: exported symbols' \
        bash "$root/test/check/symbols.sh" "$prefix/lib/libfabric/libdat-fi.so" "$prefix/lib/dat" ||
        status=1
    check 'installed program of uDAPL 1.2: pkg-config libdat' \
        installed_program "$prefix" libdat dat/udat.h || status=1
    check 'installed program of uDAPL 2.0: pkg-config libdat2' \
        installed_program "$prefix" libdat2 dat2/udat.h || status=1
    check 'installed header compiles, C and C++' installed_header "$prefix" || status=1
    check 'libfabric finds the provider' listed "$prefix" || status=1
    return $status
}

installed_files() {
    local file status=0
    for file in lib/libfabric/libdat-fi.so include/rdma/fi_ext_dat.h lib/pkgconfig/libdat-fi.pc \
        share/man/man7/fi_dat.7 bin/dat_perf share/man/man1/dat_perf.1 bin/dat_doctor \
        share/man/man1/dat_doctor.1 share/dat/schema/dat_doctor.schema.json bin/dat_info bin/dat_trace \
        share/bash-completion/completions/dat_doctor lib/dat/libdat2.so.2 \
        include/dat/dat2/udat.h share/man/man7/dat_shim.7 share/man/man5/dat_conf.5 \
        lib/dat/libdat.so.1 include/dat/dat/udat.h lib/pkgconfig/libdat.pc \
        lib/pkgconfig/libdat2.pc share/man/man3/udat.3 share/man/man3/dat_ep_connect.3; do
        [ -f "$1/$file" ] || { echo "missing: $file"; status=1; }
    done
    return $status
}

installed_header() {
    local flags
    flags=$(PKG_CONFIG_PATH=$1/lib/pkgconfig pkg-config --cflags libdat-fi) || return 1
    # Unquoted on purpose: one argument a flag.
    echo '#include <rdma/fi_ext_dat.h>' >"$work/header.c" &&
        gcc -std=c99 -Wall -Wextra -Wpedantic -Werror $flags -fsyntax-only "$work/header.c" &&
        g++ -x c++ -std=c++11 -Wall -Wextra -Werror $flags -fsyntax-only "$work/header.c"
}

# Compiled with what pkg-config says, and run with the library beside which its file lies.
installed_program() { # prefix package header
    local flags
    echo "#include <$3>"'
        int main(void) {
            DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
            DAT_IA_HANDLE ia;
            return dat_ia_open((char*)"lo", 8, &async, &ia) != DAT_SUCCESS ||
                   dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG) != DAT_SUCCESS;
        }' >"$work/program.c" || return 1
    flags=$(PKG_CONFIG_PATH=$1/lib/pkgconfig pkg-config --cflags --libs "$2") || return 1
    # Unquoted on purpose: one argument a flag.
    cc "$work/program.c" $flags -o "$work/program" &&
        LD_LIBRARY_PATH=$1/lib/dat ldd "$work/program" | grep -F "$1/lib/dat/$2.so" &&
        LD_LIBRARY_PATH=$1/lib/dat "$work/program"
}

# Without hints from anybody else libfabric offers `dat` as it was installed.
listed() {
    FI_PROVIDER_PATH=$1/lib/libfabric FI_LOG_LEVEL=warn fi_info -p dat -t FI_EP_MSG |
        tee "$work/fi_info" && grep -qx 'provider: dat' "$work/fi_info"
}

step_pingpong() {
    check 'fi_pingpong over dat' \
        env DAT_JOB_ITERATIONS=20 bash "$root/util/main_job.sh" "$work/prefix" pingpong
}

# The ring of the quickstart, then everything, and programs of others over TCP: of ScaLAPACK's without what
# programs.sh says fails anywhere, does not end anywhere, or takes most of the time.
step_mpi() {
    local status=0
    check 'Open MPI over dat' bash "$root/util/main_job.sh" "$work/prefix" ring || status=1
    bash "$work/source/test/mpi/run.sh" "$work/prefix" >"$work/mpi.out" || status=1
    bash "$work/source/test/mpi/hosts.sh" "$work/prefix" >>"$work/mpi.out" || [ $? -eq 77 ] || status=1
    FI_PROVIDER_PATH=$work/prefix/lib/libfabric DAT_MPI_LINKS=tcp \
        DAT_MPI_WITHOUT='xdsep|xdllt|xdsyevr|xzheevr' \
        bash "$work/source/test/mpi/programs.sh" >>"$work/mpi.out" || status=1
    cat "$work/mpi.out"
    sed -nE 's/^(SKIP|skip) //p' "$work/mpi.out" | while read -r reason; do count_skip "mpi: $reason"; done
    count "$(grep -c '^ok ' "$work/mpi.out")" "$(grep -c '^FAIL ' "$work/mpi.out")"
    return $status
}

# libfabric's own tests, which Debian has no package of, on what was installed.
step_fabtests() {
    local status=0
    FI_PROVIDER_PATH=$work/prefix/lib/libfabric DAT_FABTESTS_XML=$work/fabtests.xml \
        bash "$work/source/fabtests-config/run.sh" "$FABTESTS_BIN_DIR" check >"$work/fabtests.out" ||
        status=1
    cat "$work/fabtests.out"
    count "$(grep -c '^pass ' "$work/fabtests.out")" "$(grep -c '^fail ' "$work/fabtests.out")"
    return $status
}

# The programs of librpma's own source, over shared memory and TCP.
step_rpma_examples() {
    local status=0
    DAT_BUILDDIR=$work/release bash "$work/source/test/rpma/examples.sh" "$RPMA_EXAMPLES_DIR" \
        >"$work/rpma_examples" || status=1
    cat "$work/rpma_examples"
    count "$(grep -c '^pass ' "$work/rpma_examples")" "$(grep -c '^FAIL ' "$work/rpma_examples")"
    return $status
}

# The second compiler and the sanitizers in one build: clang's warnings are
# errors here, as g++'s are in the release build, which compiles each source by itself. What tests
# run most of the time, the libraries and the simulator, is optimized.
step_sanitized() {
    local compiler
    lowly
    compiler=$(batched sanitized clang++-14)
    build "$work/sanitized" clang "$compiler" dat-optimized "$compiler" -O0 \
        --enable-sanitizer=address,undefined CXX=clang++-14 CXXFLAGS='-O1 -g1' \
        --with-udapl-libdir="$work/prefix/udapl"
}

# The checks of the sources were run by the release build; what is installed differs, since the uDAPL
# libraries have a folder of their own here.
step_sanitized_check() {
    local UBSAN_OPTIONS=print_stacktrace=1
    export UBSAN_OPTIONS
    local status=0 log
    make_check "$work/sanitized" check \
        TESTS="$(make -s -C "$work/sanitized" dat-list-tests) test/check/installed.sh" || status=1
    # A process that a test of Criterion's runs in has told the test's result when it leaks.
    while read -r log; do
        grep -q '^:global-test-result: PASS' "${log%.log}.trs" || continue # counted already
        echo "FAIL ${log%.log}: leaked"
        grep -A 12 'ERROR: LeakSanitizer' "$log" | head -n 60 | sed 's/^/| /'
        count 0 1
        status=1
    done < <(find "$work/sanitized" -name '*.log' ! -name test-suite.log \
        -exec grep -l 'ERROR: LeakSanitizer' {} +)
    return $status
}

# A short run of each target, from its seeds.
step_fuzzing() {
    local status=0 libraries=$work/sanitized/.libs
    [ -f "$libraries/libdat.so" ] && [ -f "$libraries/libdat2.so" ] || libraries=
    DAT_FUZZ_CXX=$(batched fuzz clang++-14) DAT_FUZZ_LIBRARIES=$libraries \
        bash "$work/source/test/fuzz/run.sh" 5 >"$work/fuzzing" || status=1
    cat "$work/fuzzing"
    count "$(grep -c 'nothing found$' "$work/fuzzing")" "$(grep -c ' FOUND ' "$work/fuzzing")"
    return $status
}

# Either side is killed and stopped at random, over each link; its record is the note.
step_kill() {
    local status=0
    DAT_BUILDDIR=$work/release bash "$work/source/test/attack/kill.sh" >"$work/kill" || status=1
    cat "$work/kill"
    grep '^|' "$work/kill" | sed 's/^/note: /'
    count "$(grep -c '^|.* | 0 | .*|$' "$work/kill")" "$(grep -c '^VIOLATION' "$work/kill")"
    return $status
}

# What programs find that read all sources, beside steps that have less time to spare.
step_analysis() {
    local what status=0 result
    lowly
    for what in cppcheck tidy; do
        result=0
        DAT_SRCDIR=$work/source DAT_BUILDDIR=$work/release \
            bash "$work/source/test/check/$what.sh" >"$work/analysis" 2>&1 || result=$?
        cat "$work/analysis"
        if [ $result -eq 77 ]; then
            count_skip "$what: $(tail -n 1 "$work/analysis")"
            continue
        fi
        check "$what" [ $result -eq 0 ] || status=1
    done
    return $status
}

# Two namespaces, and between them a relay that harms packets; its record is the note.
step_relay() {
    local status=0
    DAT_BUILDDIR=$work/release bash "$work/source/test/attack/relay.sh" >"$work/relay" 2>&1 ||
        status=$?
    cat "$work/relay"
    if [ $status -eq 77 ]; then
        count_skip "relay: $(grep '^SKIP' "$work/relay" | tail -n 1)"
        return 0
    fi
    grep '^|' "$work/relay" | sed 's/^/note: /'
    count "$(grep -c -e '^control: ' -e '^|.* | 0 |$' "$work/relay")" \
        "$(grep -c '^VIOLATION' "$work/relay")"
    return $status
}

# The release build, in a guest with software RDMA devices. Its kernel is kept outside
# of $work, since it is the same the next time.
step_guest() {
    local status=0
    DAT_BUILDDIR=$work/release bash "$work/source/test/vm/run.sh" --limit 2700 --keep "$work/guest" \
        >"$work/guest.out" || status=1
    cat "$work/guest.out"
    count "$(grep -c '^ok ' "$work/guest.out")" "$(grep -c '^FAIL ' "$work/guest.out")"
    grep '^skip ' "$work/guest.out" | while read -r _ reason; do count_skip "$reason"; done
    return $status
}

# The libraries, and the plain programs that are to run: no command and no test of Criterion. Without
# optimization each access is there to be looked at.
step_thread_sanitizer() {
    lowly
    build_parts "$work/tsan" dat-list-tsan-parts "$(batched tsan g++)" --cache-file="$work/g++-tsan.cache" \
        --enable-werror --enable-sanitizer=thread --without-criterion --without-rapidcheck CXXFLAGS='-O0 -g1'
}

step_thread_sanitizer_check() {
    check_parts "$work/tsan" dat-list-tsan-tests
}

refuses_relative_folder() {
    mkdir -p "$work/relative" && cd "$work/relative" || return 1
    ! "$work/source/configure" -q --with-udapl-libdir=lib/dat 2>log || return 1
    grep 'with-udapl-libdir has to be an absolute path' log
}

# All that distcheck proves beyond what was done above: install and uninstall,
# and that a clean tree is one. The tests have run already, in build folders of
# the same distribution, so it compiles quickly; but none was without the RDMA devices,
# so it is here, with the test of that; nor without uDAPL, nor without the commands. Both tests are
# scripts that need no program of the tests, so none is built.
step_distcheck() {
    lowly
    check 'configure refuses a folder for uDAPL that is not absolute' refuses_relative_folder || return 1
    cd "$work/tree" || return 1
    check 'make distcheck, without verbs, uDAPL and commands' make -j"$jobs" distcheck \
        TESTS='test/transport/no_verbs_test.sh test/check/installed.sh' \
        check_PROGRAMS= check_LTLIBRARIES= check_SCRIPTS= AM_DISTCHECK_CONFIGURE_FLAGS= \
        CXX="$(batched distcheck g++)" \
        DISTCHECK_CONFIGURE_FLAGS='--enable-werror --disable-verbs --disable-udapl --disable-commands --without-criterion --without-rapidcheck CXXFLAGS=-O0'
}
