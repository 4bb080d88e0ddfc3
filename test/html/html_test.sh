#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# `make html`: every manual page, the states, the decisions and the benchmarks are there, and every link
# within the site leads somewhere; and that a link that does not is found. Exit 77, with the reason,
# where mandoc or pandoc are missing.
set -u

root=$(cd "${DAT_SRCDIR:-$(dirname "${BASH_SOURCE[0]}")/../..}" && pwd)
for program in mandoc pandoc python3; do
    command -v $program >/dev/null || {
        echo "SKIP: $program is not installed (Debian: $program)"
        exit 77
    }
done
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
bad=0
complain() {
    echo "FAILED: $*"
    bad=$((bad + 1))
}

python3 "$root/util/html/site.py" "$root" "$work/site" 1.2.3 || complain 'no site is made'
python3 "$root/test/html/links.py" "$work/site" || complain 'links'
for manual in "$root"/man/*.[1-8]; do
    [ -s "$work/site/man/${manual##*/}.html" ] || complain "there is no page of ${manual##*/}"
done
for page in index.html prov/dat/core/STATES.html prov/dat/core/states.svg test/bench/README.html man/index.html; do
    [ -s "$work/site/$page" ] || complain "there is no $page"
done
grep -q 'id="decisions-and-why"' "$work/site/prov/dat/README.html" || complain 'the decisions have no place'
grep -q '<a href="fi_dat.7.html">' "$work/site/man/dat_top.1.html" || complain 'manual pages do not link to each other'
grep -q 'Manual pages of dat 1.2.3' "$work/site/man/index.html" || complain 'the version is not told'

# What is wrong is found.
finds() { # words
    python3 "$root/test/html/links.py" "$work/broken" >"$work/said" && complain "not found: $1"
    grep -qF -- "$1" "$work/said" || complain "it does not say '$1' but: $(<"$work/said")"
    rm -rf "$work/broken"
}
cp -r "$work/site" "$work/broken"
rm "$work/broken/man/dat_top.1.html"
finds 'links to dat_top.1.html, which is not there'
cp -r "$work/site" "$work/broken"
sed -i 's/id="decisions-and-why"/id="elsewhere"/' "$work/broken/prov/dat/README.html"
finds 'there is no such place there'
cp -r "$work/site" "$work/broken"
echo '<img src="http://192.0.2.1/picture.png">' >>"$work/broken/index.html"
finds 'fetches http://192.0.2.1/picture.png'

[ $bad -eq 0 ] && echo 'html: all right'
[ $bad -eq 0 ]
