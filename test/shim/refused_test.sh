#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# A call that is refused says why, in one line: its name, the code and, where it is known, the value
# and what is offered. A post that finds its queue full writes none (dat_shim(7), ENVIRONMENT). In a
# network namespace with a second interface, which ends with the program. Exit 77, with the reason,
# where there can be none.
set -u

programs=${DAT_BUILDDIR:-.}/test/shim
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
export DAPL_DBG_TYPE=1 DAT_OVERRIDE=$work/dat.conf FI_DAT_TRANSPORT=soft
unset FI_LOG_LEVEL DAT_DBG_TYPE

skip() {
    echo "SKIP: $*"
    exit 77
}

# shellcheck disable=SC2016
network='ip link set lo up && ip link add other type bridge && ip addr add 192.0.2.1/24 dev other &&
    ip link set other up'
reason=$(unshare -n bash -c "$network" 2>&1) ||
    skip "this user cannot make a network namespace with a bridge: $reason"

for version in 1.2 2.0; do
    echo "listed u$version nonthreadsafe default lib.so dat.$version \"lo 0\" \"\"" >"$DAT_OVERRIDE"
    program=$programs/refused${version/./}
    unshare -n bash -c "$network"' && exec timeout -k 1 60 "$0" lo other' "$program" \
        >"$work/answers" 2>"$work/lines" || {
        echo "FAILED: $version: $(<"$work/answers")"
        failed=1
    }
    major=${version%.*} minor=${version#*.}
    other=$((3 - major))
    # 1.2 has no extensions, and another name for the code.
    flags=0x3f1 privileges=0x73 none=DAT_PROVIDER_NOT_FOUND
    extension=$'\ndat_extension_op(): DAT_INVALID_PARAMETER, DAT_INVALID_ARG6'
    [ $major = 2 ] || flags=0x1f1 privileges=0x33 none=DAT_NAME_NOT_FOUND extension=
    cat >"$work/wanted" <<END
dat_ia_openv(): $none, DAT_MAJOR_NOT_FOUND: version $other.0 is asked for; this library is for $major.x
dat_ia_openv(): $none, DAT_MINOR_NOT_FOUND: version $major.$((minor + 1)) is asked for; the entry "listed" of dat.conf says u$version
dat_ia_openv(): $none, DAT_THREAD_SAFETY_NOT_FOUND: threadsafe is asked for; the entry "listed" of dat.conf says nonthreadsafe
dat_ep_create(): DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_RECV: HANDLE is no handle of an EVD
dat_ep_create(): DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_RECV: an EVD for completions has to be made with DAT_EVD_DTO_FLAG, on the same IA
dat_ep_create(): DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN: an EVD for connections has to be made with DAT_EVD_CONNECTION_FLAG, on an IA of the same device
dat_ep_create(): DAT_INVALID_PARAMETER, DAT_INVALID_ARG6: max_recv_dtos of -1: 0 to 32768 is offered
dat_ep_create(): DAT_INVALID_PARAMETER, DAT_INVALID_ARG6: those whose completions one EVD takes have to have the same completion flags
dat_evd_create(): DAT_INVALID_PARAMETER, DAT_INVALID_ARG2: a length of 0: 1 to 1048576 is offered
dat_evd_create(): DAT_INVALID_PARAMETER, DAT_INVALID_ARG4: flags of 0x0: one or more of DAT_EVD_*_FLAG
dat_evd_create(): DAT_INVALID_PARAMETER, DAT_INVALID_ARG4: flags of 0x1000: within $flags
dat_lmr_create(): DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ: HANDLE is no handle of a zone of this IA
dat_lmr_create(): DAT_INVALID_PARAMETER, DAT_INVALID_ARG6: privileges of 0x1000: within $privileges
dat_lmr_create(): DAT_INVALID_PARAMETER, DAT_INVALID_ARG4: a length of 0
dat_psp_create(): DAT_INVALID_PARAMETER, DAT_INVALID_ARG2: a qualifier of 65536, which has no port in its low 16 bits
dat_psp_create(): DAT_INVALID_PARAMETER, DAT_INVALID_ARG4: flags of 0x7: DAT_PSP_CONSUMER_FLAG or DAT_PSP_PROVIDER_FLAG
dat_psp_create(): DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR: an EVD for requests has to be made with DAT_EVD_CR_FLAG, on the same IA
dat_ep_connect(): DAT_INVALID_PARAMETER, DAT_INVALID_ARG5: private data of -1 bytes at HANDLE: 0 to 508 is offered
dat_ep_dup_connect(): DAT_INVALID_PARAMETER, DAT_INVALID_ARG4: private data of 4 bytes at (nil): 0 to 508 is offered
dat_ep_post_recv(): DAT_INVALID_PARAMETER, DAT_INVALID_ARG5
dat_ep_post_send(): DAT_INVALID_PARAMETER, DAT_INVALID_ARG5
dat_ep_post_rdma_write(): DAT_INVALID_PARAMETER, DAT_INVALID_ARG6
dat_ep_post_rdma_read(): DAT_INVALID_PARAMETER, DAT_INVALID_ARG6
dat_rmr_bind(): DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR
dat_srq_post_recv(): DAT_INVALID_PARAMETER, DAT_INVALID_ARG2
dat_srq_resize(): DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ
dat_evd_post_se(): DAT_INVALID_PARAMETER, DAT_INVALID_ARG2$extension
dat_evd_dequeue(): DAT_INVALID_PARAMETER, DAT_INVALID_ARG2
END
    sed -E 's/^libdat:[a-z_]+\(\):[1-9][0-9]*<warn> //; s/0x[0-9a-f]{6,}/HANDLE/g' "$work/lines" |
        diff "$work/wanted" - || failed=1
done
exit $failed
