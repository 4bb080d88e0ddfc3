#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Whenever a program loads libfabric, Debian's libinfinipath measures the clock of the processor for a
# tenth of a second, for adapters that no test has. This makes a library with its names and nothing
# behind them, for the tests to be run with in its place: in a mount namespace of their own, and in
# the guest.
#
#   stand_in.sh FILE    makes FILE, and prints the path of the library in whose place it may be mounted;
#                       status 1 if there is no such library, or no compiler
set -u
file=${1:?}
genuine=$(/sbin/ldconfig -p | awk '$1 == "libinfinipath.so.4" {print $NF; exit}')
[ -n "$genuine" ] && genuine=$(readlink -e "$genuine") || exit 1
# What asks how many adapters there are hears of none.
nm -D --defined-only "$genuine" | sed 's/@.*//' |
    awk '$2 == "T" {print "long " $3 "(void) { return 0; }"} $2 ~ /[BD]/ {print "char " $3 "[256];"}' |
    gcc -x c -w -fno-builtin -shared -fPIC -Wl,-soname,libinfinipath.so.4 -o "$file" - || exit 1
echo "$genuine"
