#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Compiles as it is told to, but does not read anew what many sources include of the C++ library:
# that takes a third of the time that they do. For a build that is made once, and not for
# the only one: a source that lacks one of these #include lines compiles too. In test/run.sh the
# libraries and commands are built without it as well; of a test it is a plain `make check` that tells.
#
#   make CXX='bash test/precompiled.sh FOLDER g++'
#
# FOLDER/std.h has the #include lines. They are compiled into the same folder, once for each set of
# options; what is not compiled with -c is left to the compiler.
set -u

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
{
    flock 9
    if [ ! -f "$way/std.h.gch" ]; then
        mkdir -p "$way" && cp "$folder/std.h" "$way/std.h" &&
            "${options[@]}" -x c++-header -o "$way/std.h.new" "$way/std.h" &&
            mv "$way/std.h.new" "$way/std.h.gch" || exit 1
    fi
} 9>"$way.lock"
exec "$@" -include "$way/std.h"
