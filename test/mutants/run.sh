#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Small faults, planted one at a time in a copy of the sources: the tests that are to notice
# each are built and run, and must fail. test/mutants/README.md says more.
#
#   bash test/mutants/run.sh                   every mutant of test/mutants/list
#   bash test/mutants/run.sh [--all] NAME...   these; --all: with every test of make check
#   bash test/mutants/run.sh --check           whether each still fits the sources; no build
#
# DAT_MUTANTS_DIR=DIR keeps the copy and its build there, for the next time. Arguments for
# configure are taken from DAT_MUTANTS_CONFIGURE. Ends with 0 if each was killed, or is said
# to be equivalent.
set -u

root=$(cd "${DAT_SRCDIR:-$(dirname "${BASH_SOURCE[0]}")/../..}" && pwd) || exit 1
list=$root/test/mutants/list
. "$root/util/common.sh"

declare -A file=() breaks=() tests=() from=() to=() equivalent=()
names=()

fail() {
    echo "test/mutants/run.sh: $*" >&2
    exit 1
}

read_list() {
    local line name=
    while IFS= read -r line; do
        case $line in
        'mutant '*)
            name=${line#mutant }
            [ -z "${file[$name]+there}" ] || fail "$name is twice in the list"
            names+=("$name")
            file[$name]=
            ;;
        'file '*) file[$name]=${line#file } ;;
        'breaks '*) breaks[$name]=${line#breaks } ;;
        'tests '*) tests[$name]=${line#tests } ;;
        'equivalent '*) equivalent[$name]=${line#equivalent } ;;
        '- '*) from[$name]=${line#- } ;;
        '+ '*) to[$name]=${line#+ } ;;
        '' | '#'*) ;;
        *) fail "not understood: $line" ;;
        esac
    done <"$list"
    for name in "${names[@]}"; do
        if [ -z "${file[$name]}" ] || [ -z "${breaks[$name]:-}" ] || [ -z "${tests[$name]:-}" ] ||
            [ -z "${from[$name]:-}" ] || [ -z "${to[$name]:-}" ]; then
            fail "$name: a line is missing"
        fi
    done
}

# Whether what the mutant changes is in its file once.
fits() { # mutant
    local text rest
    text=$(<"$root/${file[$1]}") || return 1
    rest=${text#*"${from[$1]}"}
    [ "$rest" != "$text" ] && [ "${rest#*"${from[$1]}"}" = "$rest" ]
}

check() {
    local name status=0
    for name in "${names[@]}"; do
        if ! fits "$name"; then
            echo "$name: not once in ${file[$name]}: ${from[$name]}"
            status=1
        fi
    done
    echo "${#names[@]} mutants, each as of these sources: $([ $status -eq 0 ] && echo yes || echo no)"
    return $status
}

# Builds programs, and what they load.
build() { # program...
    local needed=("$@")
    case " $* " in
    *' test/transport/'*) needed+=(libdat-fi.la test/transport/peer) ;;
    *' test/attack/scarce_'*) needed+=(libdat-fi.la libdat.la libdat2.la librpma.la) ;;
    esac
    make -s -C "$work/build" -j"$(nproc)" "${needed[@]}" >"$work/log" 2>&1
}

# The programs of "program:filter +program ...".
programs() {
    local each
    for each; do
        each=${each#+}
        echo "${each%%:*}"
    done | sort -u
}

# True: all of them pass.
pass() { # test...
    local each arguments
    for each; do
        if [ "$each" = make_check ]; then
            make -C "$work/build" -j"$(nproc)" -k check >"$work/log" 2>&1 || return 1
            continue
        fi
        arguments=(--jobs "$(nproc)")
        [ "$each" = "${each#*:}" ] || arguments+=(--filter "${each#*:}")
        [ "$each" = "${each#+}" ] || arguments=()
        each=${each#+}
        (cd "$work/build" && DAT_SRCDIR=$work/tree DAT_BUILDDIR=$work/build \
            timeout -k 5 300 "./${each%%:*}" "${arguments[@]}") \
            >"$work/log" 2>&1 </dev/null || return 1
    done
}

# Plants it, and says what became of it. 1: it survived; ends where that makes no sense.
try() { # mutant
    local name=$1 path=$work/tree/${file[$1]} text status=0 wanted started=$SECONDS
    # Unquoted on purpose: one argument a test.
    wanted=${tests[$name]}
    [ "$all" = no ] || wanted=make_check
    text=$(<"$path")
    printf '%s\n' "${text/"${from[$name]}"/"${to[$name]}"}" >"$path"
    # shellcheck disable=SC2046,SC2086
    if [ "$all" = no ] && ! build $(programs $wanted); then
        cat "$work/log" >&2
        fail "$name does not compile"
    fi
    # shellcheck disable=SC2086
    if pass $wanted; then status=1; fi
    printf '%s\n' "$text" >"$path"
    if [ $status -eq 0 ]; then
        printf 'killed   %-44s %4d s\n' "$name" $((SECONDS - started))
    elif [ -n "${equivalent[$name]:-}" ]; then
        printf 'survived %-44s equivalent: %s\n' "$name" "${equivalent[$name]}"
        status=0
    else
        printf 'SURVIVED %-44s %s; %s\n' "$name" "${breaks[$name]}" "${tests[$name]}"
    fi
    return $status
}

# A copy of the sources that is built. Files that are as they were the last time keep their
# times, so that little is built again.
prepare() {
    local path options
    eval "options=(${DAT_MUTANTS_CONFIGURE:-"CXXFLAGS='-O1 -g'"})"
    rm -rf "$work/new" && mkdir -p "$work/tree" "$work/build" && copy_source "$root" "$work/new" &&
        (cd "$work/new" && find . -type f) >"$work/files" || return 1
    while IFS= read -r path; do
        cmp -s "$work/new/$path" "$work/tree/$path" && continue
        mkdir -p "$work/tree/${path%/*}" && cp -p "$work/new/$path" "$work/tree/$path" &&
            touch "$work/tree/$path" || return 1
    done <"$work/files"
    rm -rf "$work/new"
    if [ ! -f "$work/build/Makefile" ]; then
        (cd "$work/tree" && autoreconf -fi) >"$work/log" 2>&1 &&
            (cd "$work/build" && "$work/tree/configure" -q "${options[@]}") >>"$work/log" 2>&1
    fi
}

# What the tests say before anything is planted counts for nothing else.
pass_unchanged() { # mutant...
    local name wanted=()
    # Unquoted on purpose: one argument a test.
    # shellcheck disable=SC2206
    for name; do wanted+=(${tests[$name]}); done
    [ "$all" = no ] || wanted=(make_check)
    mapfile -t wanted < <(printf '%s\n' "${wanted[@]}" | sort -u)
    if [ "$all" = no ]; then
        # shellcheck disable=SC2046
        build $(programs "${wanted[@]}") || return 1
    fi
    pass "${wanted[@]}"
}

read_list
all=no
if [ "${1:-}" = --check ]; then
    check
    exit
elif [ "${1:-}" = --all ]; then
    all=yes
    shift
fi
check >/dev/null || { check; exit 1; }
[ $# -gt 0 ] || set -- "${names[@]}"
for name; do [ -n "${file[$name]:-}" ] || fail "no such mutant: $name"; done

if [ -n "${DAT_MUTANTS_DIR:-}" ]; then
    work=$DAT_MUTANTS_DIR
    mkdir -p "$work" && work=$(cd "$work" && pwd) || exit 1
else
    work=$(mktemp -d "${TMPDIR:-/tmp}/dat-mutants.XXXXXX") || exit 1
    trap 'rm -rf "$work"' EXIT
fi
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

prepare || { tail -n 30 "$work/log" >&2; fail 'the sources could not be copied and configured'; }
pass_unchanged "$@" || { tail -n 30 "$work/log" >&2; fail 'tests fail with nothing planted'; }
survivors=0
for name; do try "$name" || survivors=$((survivors + 1)); done
echo "$# mutants, $survivors survived"
[ $survivors -eq 0 ]
