#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Compiles as it is told to, but several sources of a library or program at once, as one that
# includes them: what they include is read once, which is most of what they take. For a build that is
# made once, in the folder of a Makefile that names them as automake does, and not for the only one.
#
#   make CXX='bash test/batched.sh FOLDER g++'
#
# The object of the first source of a batch has them all; those of the others are copies of one that
# is empty. Sources of which each has a name of its own that another has too are in different
# batches. A batch that does not compile is compiled source by source, and so is what the errors are
# of.
#
# FOLDER/batches, which is written first, has a line for each object: its name without .o,
# that of the first of its batch, and, for the first, the sources.
set -u

folder=$1
shift
compiles=no object='' source='' dependencies='' previous=''
for argument; do
    case $argument in
    -c) compiles=yes ;;
    *.cpp) source=$argument ;;
    esac
    case $previous in
    -o) object=$argument ;;
    -MF) dependencies=$argument ;;
    esac
    previous=$argument
done
if [ $compiles = no ] || [ -z "$source" ] || [[ $source = *conftest* ]]; then
    exec "$@"
fi

# A line for each object that one target has, and no other. A batch has some 2000 lines.
write_batches() { # directory of the sources
    printf 'dat-objects:\n\t@: $(foreach list,$(filter am_%%_OBJECTS,$(.VARIABLES)),$(info $($(list))))\n' |
        env -u MAKEFLAGS make -s --no-print-directory -f Makefile -f /dev/stdin dat-objects |
        awk -v sources="$1/" "$(cat "$(dirname "${BASH_SOURCE[0]}")/own_names.awk")"'
            {
                for (i = 1; i <= NF; i++) {
                    sub(/[.](lo|o)$/, "", $i)
                    ++targets[$i]
                }
                lists[++count] = $0
            }
            function put_all(list,    objects, n, i, path, batch, total) {
                split("", taken)
                split("", load)
                split("", first)
                n = split(list, objects, " ")
                for (i = 1; i <= n; i++) {
                    path = source_of(objects[i])
                    if (targets[objects[i]] == 1) {
                        if (!(path in lines)) read_own_names(path)
                        total += lines[path]
                    }
                }
                groups = int(total / 2000) + 1
                for (i = 1; i <= n; i++) {
                    path = source_of(objects[i])
                    if (targets[objects[i]] != 1 || !lines[path]) continue
                    batch = place(path, names[path])
                    if (!first[batch]) first[batch] = objects[i]
                    leader[objects[i]] = first[batch]
                    members[first[batch]] = members[first[batch]] " " path
                }
            }
            # Without what automake puts before the name of a source.
            function source_of(object,    name) {
                name = object
                sub(/.*\//, "", name)
                sub(/[^\/]*$/, "", object)
                sub(/.*-/, "", name)
                return sources object name ".cpp"
            }
            END {
                for (i = 1; i <= count; i++) put_all(lists[i])
                for (object in leader) print object, leader[object] members[object]
            }'
}

# Others that compile in the same folder wait until it is there.
[ -d "$folder/sources" ] || mkdir -p "$folder/sources" || exit 1
{
    flock 9
    if [ ! -f "$folder/batches" ]; then
        : >"$folder/sources/empty.cpp" &&
            write_batches "$(cd "$(sed -n 's/^abs_srcdir = //p' Makefile)" && pwd)" >"$folder/batches.new" &&
            mv "$folder/batches.new" "$folder/batches" || exit 1
    fi
} 9>"$folder/lock"

name=${object/.libs\//}
name=${name%.o}
read -r _ first sources < <(grep "^$name " "$folder/batches")
[ -n "${first:-}" ] || exec "$@" # of several targets

# The command with another source, another object, and more options.
compile() { # source object option...
    local command=() argument
    for argument in "${arguments[@]}"; do
        case $argument in
        "$source") argument=$1 ;;
        "$object") argument=$2 ;;
        esac
        command+=("$argument")
    done
    "${command[@]}" "${@:3}"
}
arguments=("$@")
if [ "$first" != "$name" ]; then
    {
        flock 9
        if [ ! -f "$folder/empty.o" ]; then
            compile "$folder/sources/empty.cpp" "$folder/empty.new.o" &&
                mv "$folder/empty.new.o" "$folder/empty.o" || exit
        fi
    } 9>"$folder/lock"
    cp "$folder/empty.o" "$object" && : >>"${dependencies:-/dev/null}"
    exit
fi
batch=$folder/sources/${name//\//_}.cpp
for one in $sources; do echo "#include \"$one\""; done >"$batch"
# What one source names, another may name otherwise.
compile "$batch" "$object" -Wno-shadow 2>"$batch.errors" && exit
echo "$batch: source by source, as together they do not compile: $(grep -m1 error "$batch.errors")" >&2
objects=()
for one in $sources; do
    objects+=("$object.${#objects[@]}.o")
    compile "$one" "${objects[-1]}" || exit
done
ld -r -o "$object" "${objects[@]}" && rm -f "${objects[@]}"
