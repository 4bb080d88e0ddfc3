#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Prints the bill of materials of a version as SPDX 2.3 (JSON): this project, and each library that
# configure.ac asks for, with what it is needed for. Nothing of others is in the tree.
#
#   sbom.sh SOURCE VERSION SECONDS
#
# SECONDS: when it was made, of the epoch; the same input gives the same bytes.
set -eu
source=$1 version=$2 seconds=$3
licence='BSD-2-Clause OR GPL-2.0-only'

# "VARIABLE MODULE [>= VERSION]", one library a line; a header that is looked for is one, too.
dependencies() {
    tr '\n' ' ' <"$source/configure.ac" | grep -oE 'PKG_CHECK_MODULES\(\[[A-Z0-9_]+\], *\[[^]]*\]' |
        sed -E 's/.*\(\[([A-Z0-9_]+)\], *\[([^]]*)\]/\1 \2/' | awk '{
            for (i = 2; i <= NF; ++i) {
                if ($(i + 1) == ">=") { print $1, $i, $(i + 2); i += 2 } else print $1, $i
            }
        }'
    sed -nE 's/.*AC_CHECK_HEADER\(\[([a-z0-9_]+)\.h\].*/HEADER \1/p' "$source/configure.ac"
}

# How SPDX calls what the libraries behind a variable of configure.ac are for.
relation() {
    case $1 in
    LIBFABRIC) echo DEPENDENCY_OF ;;
    VERBS | COMMAND | PMEM) echo OPTIONAL_DEPENDENCY_OF ;;
    CRITERION | HEADER) echo TEST_DEPENDENCY_OF ;;
    *)
        echo "sbom.sh does not know what the libraries of $1 in configure.ac are for" >&2
        return 1
        ;;
    esac
}

cat <<END
{
  "spdxVersion": "SPDX-2.3",
  "dataLicense": "CC0-1.0",
  "SPDXID": "SPDXRef-DOCUMENT",
  "name": "dat-$version",
  "documentNamespace": "https://spdx.org/spdxdocs/dat-$version-$seconds",
  "creationInfo": {
    "created": "$(date -u -d "@$seconds" +%Y-%m-%dT%H:%M:%SZ)",
    "creators": ["Tool: util/packaging/sbom.sh"]
  },
  "packages": [
    {
      "SPDXID": "SPDXRef-dat",
      "name": "dat",
      "versionInfo": "$version",
      "downloadLocation": "NOASSERTION",
      "filesAnalyzed": false,
      "licenseConcluded": "$licence",
      "licenseDeclared": "$licence",
      "copyrightText": "Copyright (c) the contributors of the dat project"
    }
END
list=$(dependencies)
[ -n "$list" ] || { echo "no library was found in $source/configure.ac" >&2; exit 1; }
relations=
while read -r variable name least; do
    relation=$(relation "$variable")
    id=SPDXRef-${name//[^A-Za-z0-9]/-}
    cat <<END
    ,{
      "SPDXID": "$id",
      "name": "$name",
      "comment": "${least:+at least $least; }not part of this distribution",
      "downloadLocation": "NOASSERTION",
      "filesAnalyzed": false,
      "licenseConcluded": "NOASSERTION",
      "licenseDeclared": "NOASSERTION",
      "copyrightText": "NOASSERTION"
    }
END
    relations+="
    ,{\"spdxElementId\": \"$id\", \"relationshipType\": \"$relation\", \"relatedSpdxElement\": \"SPDXRef-dat\"}"
done <<<"$list"
cat <<END
  ],
  "relationships": [
    {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-dat"}$relations
  ]
}
END
