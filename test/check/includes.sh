#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# A layer of prov/dat includes only itself and what is named after its arrow:
#   base -> std    core -> base    engine -> core, base    net -> engine, base
#   links/iwarp and other links -> net, engine, core, base
#   links/shm is offered by the handshake of links/iwarp, and uses its codes
#   rdm -> links/iwarp, links/shm, links/verbs, net, engine, core, base
#   ofi -> all of these, and libfabric    plugin.cpp -> all
# core has no I/O, clock, thread or libfabric.
#
# prov/dat-shim includes itself, base, libfabric and what fi_ext_dat.h offers, and nothing else of
# prov/dat, but for fast.h, which includes ofi/direct.h, provider.cpp, which includes
# ofi/provider.h, and engine/kernel.h and engine/barrier.h. Its objects include no dat headers, nor what
# does: those are for udat20 and udat12, each its own, and udat/entry.h chooses which of them udat
# is compiled with. prov/rpma-shim includes the same, its own fast.h among it.
set -u
. "$(dirname "${BASH_SOURCE[0]}")/sources.sh"

bad=0
complain() {
    echo "$1: $2"
    bad=$((bad + 1))
}

# Sets `layer` to the layer of a path relative to prov/dat.
layer_of() {
    case $1 in
    links/*/*)
        layer=${1#links/}
        layer=links/${layer%%/*}
        ;;
    */*) layer=${1%%/*} ;;
    *) layer=top ;;
    esac
}

# Sets `allowed` to the layers that a layer may include, itself first.
allowed_to() {
    case $1 in
    base) allowed=base ;;
    core) allowed='core base' ;;
    engine) allowed='engine core base' ;;
    net) allowed='net engine base' ;;
    links/iwarp | links/shm) allowed='links/iwarp links/shm net engine core base' ;;
    links/*) allowed="$1 net engine core base" ;;
    rdm) allowed='rdm links/iwarp links/shm links/verbs net engine core base' ;;
    ofi | top) allowed="$links top ofi rdm net engine core base" ;;
    *) allowed=unknown ;;
    esac
}

links=$(find prov/dat/links -mindepth 1 -maxdepth 1 -type d ! -name '.*' | sed 's,^prov/dat/,,' | tr '\n' ' ')

# An include between quotes: a file of ours, named from prov/dat.
check_own() { # file layer included
    local layer allowed
    [ "$2:$3" = top:config.h ] && return
    [ "$2:$3" = ofi:config.h ] && return
    [ "$1:$3" = prov/dat/engine/probes.h:config.h ] && return
    [ -f "prov/dat/$3" ] || { complain "$1" "\"$3\" is not a file under prov/dat"; return; }
    layer_of "$3"
    allowed_to "$2"
    case " $allowed " in
    *" $layer "*) ;;
    *) complain "$1" "layer $2 may not include \"$3\" (it may include: $allowed)" ;;
    esac
}

# An include between angle brackets.
check_system() { # file layer included
    case $2:$3 in
    ofi:rdma/* | top:rdma/*) ;;
    *:rdma/fabric.h | *:rdma/fi_*) complain "$1" "only ofi may include <$3>" ;;
    core:thread | core:mutex | core:shared_mutex | core:condition_variable | core:future | \
        core:chrono | core:ctime | core:iostream | core:fstream | core:cstdio | core:filesystem | \
        core:*.h) complain "$1" "core has no I/O, clock or thread: <$3>" ;;
    base:*.h) complain "$1" "base includes the standard library alone: <$3>" ;;
    esac
}

count=0
while read -r file; do
    layer_of "${file#prov/dat/}"
    allowed_to "$layer"
    [ "$allowed" != unknown ] || complain "$file" "the layer $layer is not known"
    while read -r form name; do
        count=$((count + 1))
        case $form in
        '"') check_own "$file" "$layer" "$name" ;;
        '<') check_system "$file" "$layer" "$name" ;;
        esac
    done < <(sed -nE 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*(["<])([^">]+)[">].*/\1 \2/p' "$file")
done < <(sources prov/dat -- '*.cpp' '*.h' '*.def')

# prov/dat-shim: a file, and the version of the API that it is for, or `objects`.
check_shim() { # file version form included
    case $3:$4 in
    '":dat-shim/udat'*)
        case $2:$1:$4 in
        "$2:$1:dat-shim/$2/"*) ;;
        udat?*:*:dat-shim/udat/*) ;;
        udat:*/entry.h:dat-shim/udat??/api.h) ;;
        *) complain "$1" "$2 may not include \"$4\"" ;;
        esac
        ;;
    '":dat-shim/'*) [ -f "prov/$4" ] || complain "$1" "\"$4\" is not a file under prov" ;;
    '":ofi/direct.h')
        [ "$1" = prov/dat-shim/fast.h ] || complain "$1" "only fast.h may include \"$4\""
        ;;
    '":engine/kernel.h' | '":engine/barrier.h') ;;
    '":ofi/provider.h')
        [ "$1" = prov/dat-shim/provider.cpp ] || complain "$1" "only provider.cpp may include \"$4\""
        ;;
    '":base/'*) [ -f "prov/dat/$4" ] || complain "$1" "\"$4\" is not a file under prov/dat" ;;
    '":'*) complain "$1" "\"$4\" is not of dat-shim" ;;
    '<:dat2/'*) [ "$2" = udat20 ] || complain "$1" "only udat20 may include <$4>" ;;
    '<:dat/'*) [ "$2" = udat12 ] || complain "$1" "only udat12 may include <$4>" ;;
    esac
}

while read -r file; do
    version=objects
    case $file in
    prov/dat-shim/*/*)
        version=${file#prov/dat-shim/}
        version=${version%%/*}
        ;;
    esac
    while read -r form name; do
        count=$((count + 1))
        check_shim "$file" "$version" "$form" "$name"
    done < <(sed -nE 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*(["<])([^">]+)[">].*/\1 \2/p' "$file")
done < <(sources prov/dat-shim -- '*.cpp' '*.h')

# prov/rpma-shim: itself, what brings the provider along, and what fi_ext_dat.h offers.
check_rpma() { # file form included
    case $2:$3 in
    '":rpma-shim/'*) [ -f "prov/$3" ] || complain "$1" "\"$3\" is not a file under prov" ;;
    '":dat-shim/provider.h' | '":dat-shim/log.h') ;;
    '":ofi/direct.h')
        [ "$1" = prov/rpma-shim/fast.h ] || complain "$1" "only fast.h may include \"$3\""
        ;;
    '":engine/kernel.h' | '":base/'*) [ -f "prov/dat/$3" ] || complain "$1" "\"$3\" is not a file" ;;
    '":config.h') [ "$1" = prov/rpma-shim/durable.cpp ] || complain "$1" "only durable.cpp has options" ;;
    '":'*) complain "$1" "\"$3\" is not of rpma-shim" ;;
    esac
}

while read -r file; do
    while read -r form name; do
        count=$((count + 1))
        check_rpma "$file" "$form" "$name"
    done < <(sed -nE 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*(["<])([^">]+)[">].*/\1 \2/p' "$file")
done < <(sources prov/rpma-shim -- '*.cpp' '*.h')

[ "$count" -gt 0 ] || complain prov/dat 'no include was found'
echo "$count includes, $bad against the direction of the layers"
[ "$bad" -eq 0 ]
