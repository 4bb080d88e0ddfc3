#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Nothing in what is installed is warned of by clang-tidy, with the checks of .clang-tidy. A finding
# that is none has a NOLINT(check) with the reason at its place. Only clang-tidy 14 counts: others
# have other checks. It needs a build, for what configure and make write.
# Usage: tidy.sh [prov | util]; by default prov.
#
# Most of what clang-tidy reads are headers. So it is given a few sources, each of which includes many of
# ours: those that have a name of their own in common, which is a name once only in one source, are
# included by different ones. What does not compile with others for another reason is looked at alone.
set -u
build=$(cd "${DAT_BUILDDIR:-.}" && pwd) || exit 1
. "$(dirname "${BASH_SOURCE[0]}")/sources.sh"

tidy=$(command -v clang-tidy-14) || skip 'clang-tidy 14 is not installed (Debian: clang-tidy-14)'
[ -f "$build/config.h" ] && [ -f "$build/util/trace/page.inc" ] && [ -f "$build/util/doctor/tested.h" ] ||
    skip "$build has not been built, with all commands"
libraries=(libfabric libibverbs librdmacm fmt CLI11)
pkg-config --exists "${libraries[@]}" || skip "not all of ${libraries[*]} are installed"
read -r -a flags < <(pkg-config --cflags "${libraries[@]}")

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Reads the paths of sources; writes sources that include them, about as many lines each.
distribute() { # name flags...
    local folder=$work/$1
    shift
    mkdir "$folder"
    printf '%s\n' "$@" "${flags[@]}" -std=c++20 -DHAVE_CONFIG_H "-I$build" "-I$build/util" \
        "-I$build/util/doctor" "-I$PWD/prov/dat" "-I$PWD/include" "-I$PWD/prov" "-I$PWD/util" \
        >"$folder/compile_flags.txt"
    awk -v prefix="$folder/" -v root="$PWD" '
        function own(name) {
            if (!((name, path) in has)) {
                has[name, path] = 1
                names[path] = names[path] " " name
                if (++sharers[name] > groups) groups = sharers[name]
            }
        }
        # Puts a source where none of its names is yet, and there is the most room.
        function place(path, list, i, n, g, best) {
            n = split(names[path], list, " ")
            best = 0
            for (g = 1; g <= groups; g++) {
                for (i = 1; i <= n && !((list[i], g) in taken); i++) {}
                if (i > n && (!best || load[g] < load[best])) best = g
            }
            if (!best) best = ++groups
            for (i = 1; i <= n; i++) taken[list[i], best] = 1
            load[best] += lines[path]
            printf "#include \"%s/%s\"\n", root, path >(prefix best ".cpp")
        }
        {
            path = $0
            order[++count] = path
            inside = 0
            while ((getline line <path) > 0) {
                lines[path]++
                if (line ~ /^namespace [{]/) inside = 1
                else if (line ~ /^[}] \/\/ namespace$/) inside = 0
                else if ((inside || line ~ /^(static |int main[(])/) && line ~ /^[A-Za-z]/) {
                    if (match(line, /^(struct|class|enum class|enum|union) [A-Za-z_0-9]+/)) {
                        sub(/^(enum class|[a-z]+) /, "", line)
                        sub(/[^A-Za-z_0-9].*/, "", line)
                        own(line)
                    } else if (match(line, /[A-Za-z_][A-Za-z_0-9]*( =|[;{[(])/)) {
                        line = substr(line, RSTART, RLENGTH)
                        sub(/[^A-Za-z_0-9].*/, "", line)
                        own(line)
                    }
                }
            }
            close(path)
        }
        END {for (i = 1; i <= count; i++) place(order[i])}'
}

# Looks at sources, each of which includes some of ours; what is said of N.cpp goes to N.cpp.said.
look_at() {
    printf '%s\0' "$@" | xargs -0 -n 1 -P "$(nproc)" bash -c \
        '"$1" --quiet --config-file=.clang-tidy --warnings-as-errors="*" "$2" >"$2.said" 2>"$2.errors" ||
            [ -s "$2.said" ] || echo "clang-tidy failed: $(tail -n 5 "$2.errors")" >>"$2.said"' - "$tidy"
}

# Takes those of ours that do not compile with the others out of a source.
take_out() { # source
    local path
    sed -nE "s,^($PWD/[^:]*\.cpp):.*\[clang-diagnostic-error.*,\1,p" "$1.said" | sort -u |
        while read -r path; do
            echo "looked at alone, as it does not compile with others: ${path#"$PWD/"}" >&2
            echo "#include \"$path\"" >"$(mktemp "${1%/*}/alone-XXXXXX.cpp")"
            grep -vF "\"$path\"" "$1" >"$1.less"
            mv "$1.less" "$1"
        done
}

case ${1:-prov} in
prov)
    least=150
    # Without what stands in for the devices where there are none.
    sources prov -- '*.cpp' | grep -v -e /udat12/ -e /verbs/absent.cpp | distribute prov -DDAT_SHIM_API=20
    printf '%s\n' prov/dat-shim/udat12/*.cpp | distribute udat12 -DDAT_SHIM_API=12
    ;;
util)
    least=50
    sources util -- '*.cpp' | distribute util -DDAT_PROVIDER_DIR='"/"' -DDAT_UDAPL_DIR='"/"'
    ;;
*)
    echo "usage: ${0##*/} [prov | util]" >&2
    exit 2
    ;;
esac
look_at "$work"/*/*.cpp
again=()
for source in "$work"/*/*.cpp; do
    if grep -q 'clang-diagnostic-error' "$source.said"; then
        take_out "$source"
        again+=("$source")
    fi
done
if [ ${#again[@]} -gt 0 ]; then
    for source in "$work"/*/alone-*.cpp; do [ ! -f "$source" ] || again+=("$source"); done
    look_at "${again[@]}"
fi

count=$(cat "$work"/*/*.cpp | wc -l)
[ "$count" -gt $least ] || { echo "only $count sources were found"; exit 1; }
cat "$work"/*/*.said | sed "s,$PWD/,,g" | awk '!seen[$0]++' >"$work/said"
cat "$work/said"
[ ! -s "$work/said" ] && echo "$count sources, nothing to warn of"
