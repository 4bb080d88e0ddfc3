#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Compiles the programs of librpma's own `examples` folder (its source, version 1.2), against
# Debian's header and library, for examples.sh. Nothing of them is in this project.
#
#   build_examples.sh SOURCE DIR
#
#   SOURCE   the folder `examples` of librpma's source
#   DIR      gets a folder for each example, with `server` and `client`
#
# Wants librpma-dev, libpmem-dev, libprotobuf-c-dev and gcc.
set -u

if [ $# -ne 2 ] || [ ! -d "$1/01-connection" ]; then
    sed -n 's/^#   \(build_examples.sh.*\)/usage: \1/p' "${BASH_SOURCE[0]}" >&2
    exit 2
fi
source=$(cd "$1" && pwd) || exit 2
mkdir -p "$2" && target=$(cd "$2" && pwd) || exit 2
common=$source/common
status=0

# All of them get what is common; what a program does not use is not linked.
objects=$target/.common
mkdir -p "$objects"
for file in conn epoll hello map_file_with_signature_check messages-ping-pong pmem_map_file utils; do
    gcc -O1 -DUSE_LIBPMEM -DIBV_ADVISE_MR_FLAGS_SUPPORTED=1 -ffunction-sections -I"$common" \
        -c "$common/common-$file.c" -o "$objects/$file.o" || status=1
done
gcc -O1 -I"$common" -c "$common/gpspm/GPSPM_flush.pb-c.c" -o "$objects/gpspm.o" || status=1

for folder in "$source"/[0-9]*; do
    name=${folder##*/}
    mkdir -p "$target/$name"
    for end in server client; do
        files=("$folder/$end.c")
        [ ! -f "$folder/receive-completion-queue-common.c" ] ||
            files+=("$folder/receive-completion-queue-common.c")
        gcc -O1 -DUSE_LIBPMEM -DIBV_ADVISE_MR_FLAGS_SUPPORTED=1 -I"$common" -I"$folder" \
            "${files[@]}" "$objects"/*.o -Wl,--gc-sections -lrpma -libverbs -lpmem -lprotobuf-c \
            -o "$target/$name/$end" || { echo "not built: $name/$end" && status=1; }
    done
done
exit $status
