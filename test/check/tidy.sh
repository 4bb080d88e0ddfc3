#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Nothing in what is installed is warned of by clang-tidy, with the checks of .clang-tidy. A finding
# that is none has a NOLINT(check) with the reason at its place. Only clang-tidy 14 counts: others
# have other checks. It needs a build, for what configure and make write.
#
# Most of what clang-tidy reads are headers. So it is given a few sources, each of which includes many of
# ours: copies of them, in which a name that several sources have, each for itself, has the number of its
# source behind it. What does not compile so is looked at alone.
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

# Ours, as they are looked at.
tree=$work/tree
mkdir "$tree"
sources prov util include -- '*.cpp' '*.h' '*.inc' '*.def' | xargs -d '\n' cp --parents -t "$tree" || exit 1

# Reads the paths of sources; writes sources that include them, about as many lines each, and changes
# those names in the copies. A name stays that is in its source one of a class or a header too: so do those
# of a table (.def), which have it there. Sources that keep the same name are included by different ones.
distribute() { # name flags...
    local folder=$work/$1
    shift
    mkdir "$folder"
    printf '%s\n' "$@" "${flags[@]}" -std=c++20 -DHAVE_CONFIG_H "-I$build" "-I$build/util" \
        "-I$build/util/doctor" "-I$tree/prov/dat" "-I$tree/include" "-I$tree/prov" "-I$tree/util" \
        >"$folder/compile_flags.txt"
    awk -v prefix="$folder/" -v tree="$tree" "$(cat test/own_names.awk)"'
        function stays(name, path) {
            gsub("[.]" name " = ", "", text[path])
            return text[path] ~ "(\\.|->|[A-Z][A-Za-z]*::|>::|dat::[a-z]+::|fi_[a-z]+, )" name "[^A-Za-z0-9_]"
        }
        # Another number each, and nothing that is not caught at the end of main(), which
        # bugprone-exception-escape knows by its name alone.
        function rename(path, number, list, i, n, edit) {
            edit = prefix number ".sed"
            print "s/^int main\\((.*)\\) \\{$/int main(\\1) noexcept {/" >edit
            n = split(names[path], list, " ")
            for (i = 1; i <= n; i++) {
                if (sharers[list[i]] < 2) continue
                if (text[path] ~ /\.def"/ || stays(list[i], path)) keeps[path] = keeps[path] " " list[i]
                else printf "/^#include/!s/(^|[^.>:A-Za-z0-9_])%s\\>/\\1%s_%d/g\n", list[i], list[i], number >edit
            }
            close(edit)
            printf "%s\t%s/%s\n", edit, tree, path >(prefix "edits")
        }
        function include(path) {
            printf "#include \"%s/%s\"\n", tree, path >(prefix place(path, keeps[path]) ".cpp")
        }
        {
            order[++count] = $0
            read_own_names($0)
        }
        END {
            for (i = 1; i <= count; i++) rename(order[i], i)
            for (i = 1; i <= count; i++) if (keeps[order[i]]) include(order[i])
            for (i = 1; i <= count; i++) if (!keeps[order[i]]) include(order[i])
        }'
    while IFS=$'\t' read -r edit path; do sed -E -i -f "$edit" "$path" || exit 1; done <"$folder/edits"
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
    sed -nE "s,^($tree/[^:]*\.cpp):.*\[clang-diagnostic-error.*,\1,p" "$1.said" | sort -u |
        while read -r path; do
            echo "looked at alone, as it does not compile with others: ${path#"$tree/"}" >&2
            # Under its own names.
            echo "#include \"$PWD/${path#"$tree/"}\"" >"$(mktemp "${1%/*}/alone-XXXXXX.cpp")"
            grep -vF "\"$path\"" "$1" >"$1.less"
            mv "$1.less" "$1"
        done
}

# Without what stands in for the devices where there are none. Of the entry points of uDAPL what both
# versions have in common is looked at as that of 2.0.
sources prov util -- '*.cpp' | grep -v -e /udat -e /verbs/absent.cpp |
    distribute all -DDAT_SHIM_API=20 -DDAT_PROVIDER_DIR='"/"' -DDAT_UDAPL_DIR='"/"'
sources prov/dat-shim/udat prov/dat-shim/udat20 -- '*.cpp' | distribute udat20 -DDAT_SHIM_API=20
sources prov/dat-shim/udat12 -- '*.cpp' | distribute udat12 -DDAT_SHIM_API=12
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
[ "$count" -gt 200 ] || { echo "only $count sources were found"; exit 1; }
cat "$work"/*/*.said | sed "s,$tree/,,g; s,$PWD/,,g" | awk '!seen[$0]++' >"$work/said"
cat "$work/said"
[ ! -s "$work/said" ] && echo "$count sources, nothing to warn of"
