#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Compiles as it is told to, but does not read anew what many sources include of the C++ library:
# that takes a third of the time that they do. A source that lacks one of these #include lines
# compiles too, as one does that names what comes along with them; test/check/standard_headers.sh knows
# their names.
#
#   make CXX='bash test/precompiled.sh FOLDER g++'
#   precompiled.sh --headers     prints those #include lines
#
# They are compiled into FOLDER, once for each set of options; what is not compiled with -c is left
# to the compiler. So is what does not compile so: in headers that are compiled in advance g++ gives
# warnings that it withholds in headers of the system.
set -u

if [ "$1" = --headers ]; then
    cd "$(dirname "${BASH_SOURCE[0]}")/.." &&
        grep -rhoE '^#include <[a-z_]+>' prov util test | sort | uniq -c | awk '$1 >= 20 {print $2, $3}'
    exit
fi
folder=$1
shift
compiles=no source='' skip=no options=()
for argument; do
    if [ $skip = yes ]; then
        skip=no
        continue
    fi
    case $argument in
    -c) compiles=yes ;;
    -o | -MF | -MT | -MQ) skip=yes ;;
    *.cpp) source=${argument##*/} ;;
    -D_*) options+=("$argument") ;; # those that the library knows
    -D* | -I* | -M*) ;;
    *) options+=("$argument") ;;
    esac
done
if [ $compiles = no ] || [ -z "$source" ] || [[ $source = conftest* ]]; then
    exec "$@"
fi

name=$(cksum <<<"${options[*]}")
way=$folder/${name%% *}
# Others that compile in the same way wait until it is there.
mkdir -p "$way" || exit 1
{
    flock 9
    if [ ! -f "$way/std.h.gch" ]; then
        bash "${BASH_SOURCE[0]}" --headers >"$way/std.h" &&
            "${options[@]}" -x c++-header -o "$way/std.h.new" "$way/std.h" &&
            mv "$way/std.h.new" "$way/std.h.gch" || exec "$@" 9>&-
    fi
} 9>"$way.lock"
if ! said=$("$@" -include "$way/std.h" 2>&1); then
    echo "$source: without precompiled headers, as it does not compile with them" >&2
    exec "$@"
fi
[ -z "$said" ] || echo "$said" >&2
