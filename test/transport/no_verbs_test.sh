#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# A build with --disable-verbs: libfabric's fi_info finds the software domain, and no device;
# who asks for devices is told why there are none.
set -u

export FI_PROVIDER=dat FI_PROVIDER_PATH=${FI_PROVIDER_PATH:-${DAT_BUILDDIR:-.}/.libs}
export FI_LOG_LEVEL=warn FI_LOG_PROV=dat
command -v fi_info >/dev/null || { echo 'there is no fi_info'; exit 77; }

found=$(fi_info -p dat -t FI_EP_MSG) || { echo "nothing is found: $found"; exit 1; }
echo "$found"
! grep -q 'domain: .*/' <<<"$found" || { echo 'a device is found'; exit 1; }
if found=$(FI_DAT_TRANSPORT=verbs fi_info -p dat -t FI_EP_MSG 2>&1); then
    echo "devices are found: $found"
    exit 1
fi
echo "$found"
grep -q 'built without libibverbs and librdmacm' <<<"$found"
