# shellcheck shell=bash disable=SC2034,SC2086,SC2154
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Only if it is named.
# Needs persistent memory.
#
# librpma over each device: the rules of its behaviour, on this library and, over rxe, on the
# genuine one (test/rpma); each call beside the genuine library in all pairings; programs as
# their users write them (test/conformance/rpma), also with a genuine library at either end; and
# where RPMA_EXAMPLES_DIR names a folder of them, the programs of librpma's own source.

tests=(
    "900 calls_over_rxe__are_those_of_the_genuine_library calls"
    "300 programs_over_rxe programs $rxe d d"
    "300 programs_over_siw programs $siw d d"
    "300 programs_over_rxe__are_served_by_the_genuine_library programs $rxe g d"
    "300 programs_over_rxe__serve_the_genuine_library programs $rxe d g"
    "300 connections_over_rxe__leave_nothing soak rxe"
    "300 connections_over_siw__leave_nothing soak siw"
    "1200 examples_over_rxe examples rxe:dd"
    "1200 examples_over_rxe__serve_the_genuine_library examples rxe:dg"
    "1200 examples_over_rxe__are_served_by_the_genuine_library examples rxe:gd"
    "1200 examples_of_the_genuine_library_over_rxe examples rxe:gg"
    "1200 examples_over_siw examples siw:dd"
    "300 persistent_memory__is_written_back persistent_memory"
)
# The suites of the rules, each over each device: of one file of test/rpma, more or less.
for part in 'calls @(request|connect|values|descriptor|context|defaults|log|advise|delete)' \
    'ends @(event|end|flushed|receiver|private_data)' 'killed killed' 'file file' \
    'queues @(wait|arming|channel|wc)' 'transfers @(atomic|flags|flush|nothing)'; do
    read -r name suites <<<"$part"
    for device in rxe siw; do
        tests+=("600 clauses_of_${name}_over_$device clauses $device rpma_$suites")
    done
    tests+=("600 clauses_of_${name}_over_rxe__hold_with_the_genuine_library genuine_clauses rpma_$suites")
done
unset FI_PROVIDER FI_PROVIDER_PATH FI_LOG_LEVEL

# The folder of the genuine library.
genuine() {
    /sbin/ldconfig -p | sed -n 's,.*librpma\.so\.0 .* => \(/.*\)/librpma\.so\.0$,\1,p' | head -n 1
}

clauses() { # rxe|siw suites
    DAT_TRANSPORT=$1 CRITERION_JOBS=2 "$DAT_BUILDDIR/test/rpma/rpma_clauses" --filter "$2/*"
}

genuine_clauses() { # suites
    export DAT_RPMA_GENUINE=1 LD_LIBRARY_PATH
    LD_LIBRARY_PATH=$(genuine)
    [ -n "$LD_LIBRARY_PATH" ] || die 'there is no genuine librpma (Debian: librpma0)'
    DAT_TRANSPORT=rxe CRITERION_JOBS=2 "$DAT_BUILDDIR/test/rpma/.libs/rpma_clauses" --filter "$1/*"
}

calls() {
    export DAT_TRANSPORT=rxe DAT_RPMA_KEEP=/run/job
    bash "$DAT_SRCDIR/test/rpma/calls.sh"
}

programs() { # address d|g d|g
    local ours=$DAT_BUILDDIR/.libs theirs
    theirs=$(genuine)
    SERVER_LIBRARY=$ours CLIENT_LIBRARY=$ours
    [ $2 = d ] || SERVER_LIBRARY=$theirs
    [ $3 = d ] || CLIENT_LIBRARY=$theirs
    export SERVER_LIBRARY CLIENT_LIBRARY FI_DAT_TRANSPORT=verbs
    bash "$DAT_SRCDIR/test/conformance/rpma/run.sh" device $1
}

soak() { # rxe|siw
    DAT_TRANSPORT=$1 "$DAT_BUILDDIR/test/rpma/soak" 24
}

examples() { # link...
    [ -n "${RPMA_EXAMPLES_DIR:-}" ] || { echo 'RPMA_EXAMPLES_DIR names no folder of them'; exit 77; }
    bash "$DAT_SRCDIR/test/rpma/examples.sh" "$RPMA_EXAMPLES_DIR" "$@"
}

# Files whose pages are the memory itself, written by peers without a device.
persistent_memory() {
    [ -e /dev/pmem0 ] || { echo 'the guest has no persistent memory'; exit 77; }
    mkfs.ext4 -q -b 4096 /dev/pmem0 && mkdir -p /mnt/pmem && mount -o dax /dev/pmem0 /mnt/pmem || exit 1
    DAT_DAX_DIR=/mnt/pmem TMPDIR=/mnt/pmem CRITERION_JOBS=2 \
        "$DAT_BUILDDIR/test/rpma/rpma_clauses" --filter 'rpma_file*/*'
}
