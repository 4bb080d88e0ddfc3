#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# util/release.sh tags what is right, and refuses what is not: in a repository made of these sources, each
# thing that it looks at is spoilt in turn, and exactly that is to be named. Stand-ins take the place
# of what takes long there: two distributions, and packaging.sh, which is a test of its own.
set -u
. "$(dirname "${BASH_SOURCE[0]}")/sources.sh"
root=$PWD
. "$root/util/common.sh"
command -v git >/dev/null || { echo 'SKIP: there is no git (Debian: git)'; exit 77; }
work=$(mktemp -d) || exit 1
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
bad=0
complain() {
    echo "$*"
    bad=1
}
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=test GIT_COMMITTER_NAME=test \
    GIT_AUTHOR_EMAIL=test@example.org GIT_COMMITTER_EMAIL=test@example.org

# --- a repository that is ready for a release --------------------------------

copy_source "$root" "$work/tree" && cd "$work/tree" && chmod -R u+w . || exit 1
number() { sed -nE "s/^m4_define\(\[dat_version_$1\], \[([0-9]+)\]\)$/\1/p" configure.ac; }
version=$(number major).$(number minor).$(number patch)
last=$(find test/spec/abi -mindepth 1 -maxdepth 1 -printf '%f\n' | sort -V | tail -n 1).0
sed -i "s/^$version (not released)$/$version (2030-01-02)/" util/packaging/NEWS
sed -i "s/^Version ${version%.*}, not released yet\./Version ${version%.*}./" README.md
cat >util/package.sh <<'END'
#!/usr/bin/env bash
echo "${FAKE_DIST:-the same}" >"$2/dat-0.tar.gz"
[ -z "${FAKE_DIST:-}" ] || echo "$TMPDIR" >"$2/dat-0.tar.gz"
echo "$2/dat-0.tar.gz"
END
echo 'exit ${FAKE_PACKAGING:-0}' >test/check/packaging.sh
{ git init -q . && git add -A . && git commit -q -m 'The last release' && git tag "v$last" &&
    git commit -q --allow-empty -m 'What is to be released'; } || exit 1
ready=$(git rev-parse HEAD)
echo '90 passed, 0 failed' >"$work/passed"
echo '90 passed, 0 failed, 1 skipped' >"$work/skipped"
export DAT_RELEASE_TESTS=$work/passed

restore() {
    git tag -d "v$version" >/dev/null 2>&1
    git reset -q --hard "$ready" && git clean -qfd
}
commit() { git commit -q -a -m 'Spoilt'; }

# --- ready: a tag, with the entry of NEWS as its text -------------------------

said=$(bash util/release.sh --dry-run 2>&1) || complain "a dry run of what is ready fails: $said"
[ -z "$(git tag --list "v$version")" ] || complain 'a dry run has made a tag'
grep -qx "git tag -a v$version would be next" <<<"$said" || complain "a dry run says: $said"
said=$(bash util/release.sh 2>&1) || complain "what is ready is refused: $said"
[ "$(git rev-parse -q --verify "v$version^{commit}")" = "$ready" ] || complain 'the tag is not on this commit'
git tag --list --format '%(contents)' "v$version" | head -n 1 | grep -qF "$version (2030-01-02)" ||
    complain 'the text of the tag does not begin with the entry of NEWS'
git tag --list --format '%(contents)' "v$version" | grep -q "^${last%.*}\.[0-9]* (" &&
    complain 'the text of the tag has the entry of another release, too'
restore

# --- each that is spoilt is named, alone, and there is no tag ---------------------

spoilt() { # what-is-to-be-named command...
    local named=$1 failed
    shift
    "$@"
    local said
    said=$(bash util/release.sh --dry-run 2>&1) && complain "\"$named\" is let through"
    failed=$(grep '^FAILED: ' <<<"$said")
    [ "$failed" = "FAILED: $named" ] || complain "instead of \"FAILED: $named\" it says: $said"
    restore
}
uncommitted() { echo >>README.md; }
older() { cp -R "test/spec/abi/${last%.*}" test/spec/abi/9999.0 && git add -A . && commit && git tag v9999.0.0; }
tagged() { git commit -q --allow-empty -m Elsewhere && git tag "v$version" && git reset -q --hard "$ready"; }
elsewhere() { git checkout -q --orphan alone && git commit -q -m alone && sed -i \
    "s/^first_commit=.*/first_commit=$(git rev-parse "v$last")/; s/^first_version=.*/first_version=$last/" \
    util/release.sh && commit; }
without_date() { sed -i "s/^$version (2030-01-02)/$version (not released)/" util/packaging/NEWS && commit; }
said_unreleased() { sed -i "s/^Version ${version%.*}\./Version ${version%.*}, not released yet./" README.md && commit; }
old_header() { sed -i 's/^\(#define FI_DAT_EXT_VERSION_MINOR\) .*/\1 999/' include/rdma/fi_ext_dat.h && commit; }
unrecorded() { git rm -q "test/spec/abi/${last%.*}/symbols" && commit; }
inconsistent() { export FAKE_PACKAGING=1; }
unlike() { export FAKE_DIST=yes; }
failing() { export DAT_RELEASE_TESTS=$work/skipped; }

spoilt 'nothing is uncommitted' uncommitted
spoilt "$version is newer than 9999.0.0" older
git tag -d v9999.0.0 >/dev/null
spoilt "$last is an ancestor" elsewhere
spoilt "there is no tag v$version" tagged
spoilt "fi_ext_dat.h is of version ${version%.*}" old_header
spoilt "NEWS begins with $version and its date" without_date
spoilt "README.md says version ${version%.*}" said_unreleased
spoilt "the interfaces of $last are recorded" unrecorded
spoilt 'the packaging is consistent' inconsistent
unset FAKE_PACKAGING
spoilt 'two distributions are the same bytes' unlike
unset FAKE_DIST
spoilt 'all tests pass, and none is skipped' failing
exit $bad
