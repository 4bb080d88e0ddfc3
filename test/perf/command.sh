# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# For the tests of the command dat_perf, to be sourced: they run it with a few
# operations of each test. How long anything takes is of no matter.
build=$(cd "${DAT_BUILDDIR:-.}" && pwd)
export FI_PROVIDER_PATH=$build/.libs
perf=$build/dat_perf
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
bad=0

complain() {
    echo "FAILED: $*"
    bad=$((bad + 1))
}

# Runs dat_perf with the arguments behind the status that it should end with.
runs() { # status arguments...
    local wanted=$1 status=0
    shift
    "$perf" "$@" >"$work/out" 2>"$work/err" || status=$?
    [ $status -eq "$wanted" ] && return
    complain "dat_perf $* ended with $status, not $wanted"
    cat "$work/out" "$work/err"
}

# Standard error is one line, with these words.
one_line() { # words
    if [ "$(wc -l <"$work/err")" -ne 1 ] || ! grep -qF -- "$1" "$work/err"; then
        complain "not one line with '$1':"
        cat "$work/err"
    fi
}

few=(--rounds 1 --operations 5)
