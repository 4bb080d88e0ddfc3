#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What a distribution has besides the tree: at its top debian/, so that dpkg-buildpackage works
# in it, NEWS, and dat.spec, so that rpmbuild takes the archive as it is; and the SBOM. The version
# comes from configure.ac, through `make dist`.
#
#   dist.sh SOURCE DISTRIBUTION VERSION SECONDS
#
# SECONDS: the time that the result bears, of the epoch.
set -eu
source=$1 distribution=$2 version=$3 seconds=$4

# The tree may be read-only, and be a distribution itself, with all of this in it.
rm -rf "$distribution/debian" "$distribution/NEWS" "$distribution/dat.spec"
cp -R "$source/util/packaging/debian" "$distribution/debian"
cp "$source/util/packaging/NEWS" "$distribution/NEWS"
chmod -R u+w "$distribution/debian" "$distribution/NEWS"

maintainer=$(sed -n 's/^Maintainer: //p' "$source/util/packaging/debian/control")
entry() { # version date
    cat <<END
dat ($1-1) unstable; urgency=medium

  * Version $1; what is new is in NEWS.

 -- $maintainer  $(LC_ALL=C date -u -d "$2" '+%a, %d %b %Y %H:%M:%S +0000')

END
}
# This version, and behind it those that were released before, with the dates that NEWS has.
{
    entry "$version" "@$seconds"
    sed -nE 's/^([0-9]+\.[0-9]+\.[0-9]+) \(([0-9-]{10})\)$/\1 \2/p' "$source/util/packaging/NEWS" |
        while read -r released date; do [ "$released" = "$version" ] || entry "$released" "$date"; done
} >"$distribution/debian/changelog"

sed "s/@VERSION@/$version/" "$source/util/packaging/dat.spec.in" >"$distribution/dat.spec"
bash "$source/util/packaging/sbom.sh" "$source" "$version" "$seconds" \
    >"$distribution/util/packaging/dat.spdx.json"
