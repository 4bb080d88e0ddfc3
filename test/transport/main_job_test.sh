#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What util/main_job.sh says where it cannot succeed: of a folder of providers that is none or
# cannot be read, and of a program that does not end. The programs are stand-ins.
set -u

root=$(cd "${DAT_SRCDIR:-$(dirname "${BASH_SOURCE[0]}")/../..}" && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

# fi_pingpong that listens, as the server, and never ends.
mkdir -p "$work/bin" "$work/prefix/lib/libfabric" "$work/closed/lib/libfabric"
cat >"$work/bin/fi_pingpong" <<'END'
#!/bin/bash
while [ $# -gt 0 ]; do
    [ "$1" != -B ] || exec python3 -c '
import socket, sys, time
s = socket.socket()
s.bind(("127.0.0.1", int(sys.argv[1])))
s.listen()
time.sleep(1000)' "$2"
    shift
done
exec sleep 1000
END
chmod 755 "$work/bin/fi_pingpong"

# Runs it, which has to fail and to say so. A command before it may stand in $as.
as=()
says() { # pattern prefix variable=value...
    local pattern=$1 prefix=$2
    shift 2
    if "${as[@]}" env "PATH=$work/bin:$PATH" "$@" bash "$root/util/main_job.sh" "$prefix" pingpong \
        >"$work/said" 2>&1; then
        echo "FAILED: it succeeds where '$pattern' is to be said"
        failed=1
    elif grep -Eq "$pattern" "$work/said"; then
        echo "PASS: $pattern"
    else
        echo "FAILED: '$pattern' is not in:"
        cat "$work/said"
        failed=1
    fi
}

says 'lib/libfabric is not there' "$work/nowhere"
touch "$work/file"
says 'file is no folder' '' "FI_PROVIDER_PATH=$work/file"
says 'nowhere is not there' '' "FI_PROVIDER_PATH=$work/prefix/lib/libfabric:$work/nowhere"
# In which the stand-in begins to listen.
says 'exit status 124: no end within 5 s \(DAT_JOB_LIMIT_S\)' "$work/prefix" DAT_JOB_LIMIT_S=5
chmod 000 "$work/closed/lib/libfabric"
if [ "$(id -u)" -eq 0 ]; then # who may read everything
    chmod 755 "$work" "$work/closed" "$work/closed/lib"
    as=(setpriv --reuid=65534 --clear-groups)
fi
if reason=$("${as[@]}" bash -c '[ -r "$0" ]' "$root/util/main_job.sh" 2>&1); then
    says 'lib/libfabric cannot be read by user [0-9]+: it is of user [0-9]+, with the mode 0' \
        "$work/closed"
else
    echo "not looked at: a folder without rights; another user cannot run here: $reason"
fi
chmod 755 "$work/closed/lib/libfabric"
[ $failed -eq 0 ] && echo PASS
exit $failed
