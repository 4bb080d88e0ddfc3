#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Makes the tag of a release, after all that can be checked has been: CONTRIBUTING.md has the steps
# around it.
#
#   release.sh [--dry-run] [--sign]    checks, and tags HEAD as vX.Y.Z, which configure.ac says
#   release.sh --last-release          prints the last release and its commit
#
#   --dry-run   all checks, no tag
#   --sign      a signed tag (git tag -s) instead of an annotated one
#
# DAT_RELEASE_TESTS=LOG   the output of a `bash test/run.sh` of this commit, whose last line has to
#                         say that nothing failed or was skipped; without it the tests are run. With
#                         --dry-run it may be missing.
#
# Every check is made, also where one has failed. Exit status 0: all were right.
set -u

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 1

# Version 0.1.0 was not tagged: this commit is what it was.
first_version=0.1.0
first_commit=6f6cdffb83587dbb24f6ceacba808d689298c35c

# The last release: "VERSION COMMIT".
last_release() {
    local tag
    tag=$(git tag --list 'v[0-9]*.[0-9]*.[0-9]*' --merged HEAD --sort=-version:refname 2>/dev/null | head -n 1)
    if [ -n "$tag" ]; then
        echo "${tag#v} $(git rev-list -n 1 "$tag")"
    else
        echo "$first_version $first_commit"
    fi
}

usage() {
    sed -n 's/^#   \(release.sh.*\)/usage: \1/p' "${BASH_SOURCE[0]}" >&2
    exit 2
}
dry=no
sign=-a
for word; do
    case $word in
    --dry-run) dry=yes ;;
    --sign) sign=-s ;;
    --last-release) last_release; exit ;;
    *) usage ;;
    esac
done

failed=0
check() { # title command...
    local title=$1 said
    shift
    if said=$("$@" 2>&1); then
        echo "ok: $title"
    else
        failed=$((failed + 1))
        echo "FAILED: $title"
        [ -z "$said" ] || sed 's/^/    /' <<<"$said" | tail -n 20
    fi
}

number() { sed -nE "s/^m4_define\(\[dat_version_$1\], \[([0-9]+)\]\)$/\1/p" configure.ac; }
version=$(number major).$(number minor).$(number patch)
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || { echo "configure.ac has no version: $version"; exit 1; }
read -r last last_commit < <(last_release)
work=$(mktemp -d) || exit 1
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

is_clean() {
    local changed
    changed=$(git status --porcelain) && [ -z "$changed" ] || { echo "$changed"; return 1; }
}
is_newer() {
    [ "$(printf '%s\n' "$last" "$version" | sort -V | tail -n 1)" = "$version" ] && [ "$last" != "$version" ]
}
is_not_tagged() { ! git rev-parse -q --verify "refs/tags/v$version"; }
descends() { git merge-base --is-ancestor "$last_commit" HEAD; }
# The newest entry is this version's, with a date and something in it.
has_news() {
    local line
    line=$(grep -m 1 -E '^[0-9]+\.[0-9]+\.[0-9]+ ' util/packaging/NEWS)
    [[ $line =~ ^$version\ \([0-9]{4}-[0-9]{2}-[0-9]{2}\)$ ]] ||
        { echo "the newest entry of util/packaging/NEWS is \"$line\"; \"$version (YYYY-MM-DD)\" is due"; return 1; }
}
says_version() {
    grep -q "^Version ${version%.*}\.\|^Version ${version%.*}$" README.md && ! grep '^Version .*not released' README.md
}
is_header_of_version() {
    grep -qx "#define FI_DAT_EXT_VERSION_MAJOR $(number major)" include/rdma/fi_ext_dat.h &&
        grep -qx "#define FI_DAT_EXT_VERSION_MINOR $(number minor)" include/rdma/fi_ext_dat.h
}
# What programs rely on, as the last release had it.
has_abi_recorded() {
    [ -f "test/spec/abi/${last%.*}/symbols" ] && [ -f "test/spec/abi/${last%.*}/rdma/fi_ext_dat.h" ] ||
        { echo "test/spec/abi/${last%.*} lacks the interfaces of $last"; return 1; }
}
# Two distributions, of one commit and from two places, are the same bytes.
is_reproducible() {
    local a b
    mkdir -p "$work/a/first" "$work/b/second/deeper" &&
        a=$(umask 022 && TMPDIR=$work/a/first TZ=UTC LC_ALL=C bash util/package.sh dist "$work/a") &&
        b=$(umask 027 && TMPDIR=$work/b/second/deeper TZ=Asia/Tokyo LC_ALL=C.UTF-8 \
            bash util/package.sh dist "$work/b") &&
        cmp "$(tail -n 1 <<<"$a")" "$(tail -n 1 <<<"$b")"
}
has_passed() {
    local log=${DAT_RELEASE_TESTS:-}
    if [ -z "$log" ]; then
        log=$work/tests
        CI=true bash test/run.sh >"$log" 2>&1
    fi
    tail -n 1 "$log" | grep -qE '^[1-9][0-9]* passed, 0 failed$' || { tail -n 3 "$log"; return 1; }
}

echo "version $version, after $last (${last_commit:0:12})"
check 'nothing is uncommitted' is_clean
check "$version is newer than $last" is_newer
check "$last is an ancestor" descends
check "there is no tag v$version" is_not_tagged
check "NEWS begins with $version and its date" has_news
check "README.md says version ${version%.*}" says_version
check "fi_ext_dat.h is of version ${version%.*}" is_header_of_version
check "the interfaces of $last are recorded" has_abi_recorded
check 'the packaging is consistent' env DAT_SRCDIR="$root" bash test/check/packaging.sh
check 'two distributions are the same bytes' is_reproducible
if [ $dry = yes ] && [ -z "${DAT_RELEASE_TESTS:-}" ]; then
    echo 'not run: test/run.sh (--dry-run, and no DAT_RELEASE_TESTS)'
else
    check 'all tests pass, and none is skipped' has_passed
fi

if [ $failed -ne 0 ]; then
    echo "$failed checks failed: there is no tag v$version"
    exit 1
fi
if [ $dry = yes ]; then
    echo "git tag $sign v$version would be next"
    exit 0
fi
# The entry of NEWS is the text of the tag.
awk -v version="$version" '$1 == version {on = 1} $1 != version && /^[0-9]+\.[0-9]+\.[0-9]+ / {on = 0} on' \
    util/packaging/NEWS | git tag $sign -F - "v$version" && echo "tagged v$version; next: git push origin v$version"
