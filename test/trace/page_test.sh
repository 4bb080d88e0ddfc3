#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The page of dat_trace --html in headless Chromium (browser.py says what each check looks at): a
# run of the simulator with a known seed has exactly its slices, a click on a BROKEN slice shows
# the reason and the clause, a million operations load.
set -u

root=${DAT_SRCDIR:-$(dirname "${BASH_SOURCE[0]}")/../..}
if ! command -v chromium >/dev/null; then
    echo 'SKIP: chromium is not installed'
    exit 77
fi
folder=$(mktemp -d) || exit 1
pipes=$folder
export TMPDIR=$folder # of the browser
. "$root/test/transport/processes.sh"
. "$root/test/trace/common.sh"
clean_up() {
    stop_both
    rm -rf "$folder"
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

browser() {
    "$here/browser.py" "$@" || fail "$current"
}

# What is expected comes from the words that the simulator prints.
current='the slices of a run'
"$build/sim_random" --seed 16 --runs 1 --trace >"$folder/words" || fail "$current"
"$build/sim_random" --seed 16 --runs 1 --trace-file "$folder/sim" >/dev/null || fail "$current"
"$here/slices_of.py" "$folder/words" >"$folder/expected" || fail "$current"
"$build/dat_trace" --html -o "$folder/sim.html" "$folder/sim" || fail "$current"
browser slices "$folder/sim.html" "$folder/expected"

current='a connection that broke'
connected broken FI_DAT_SHM=0
exchange 20
broken
"$build/dat_trace" --html -o "$folder/broken.html" "$folder/broken.a" "$folder/broken.b" || fail "$current"
browser broken "$folder/broken.html" EP-56 'What decided it' 'the peer sent a Terminate message'

current='a million operations'
"$here/alter.py" many "$folder/broken.a" "$folder/million" 1000000
"$build/dat_trace" --html -o "$folder/million.html" "$folder/million" || fail "$current"
browser many "$folder/million.html" 1000000
echo passed
