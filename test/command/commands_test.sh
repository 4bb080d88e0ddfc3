#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What all commands have in common: --version, --help, one line and the right status for wrong options,
# no colours but on a terminal, --json as its schema says, options that the manual page names, and
# bash completion. And what dat_info says.
set -u

root=$(cd "${DAT_SRCDIR:-$(dirname "${BASH_SOURCE[0]}")/../..}" && pwd)
build=$(cd "${DAT_BUILDDIR:-.}" && pwd)
export FI_PROVIDER=dat FI_PROVIDER_PATH=$build/.libs
# libfabric lets go of what it was told of variables (fi_param_define()) without freeing it.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
for name in "${!FI_DAT_@}" NO_COLOR; do unset "$name"; done
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
bad=0
complain() {
    echo "FAILED: $*"
    bad=$((bad + 1))
}

commands='dat_doctor dat_info dat_perf dat_states dat_top dat_trace'
version=$(sed -n 's/^#define PACKAGE_VERSION "\(.*\)"/\1/p' "$build/config.h")

# --- options ------------------------------------------------------------------------

for command in $commands; do
    said=$("$build/$command" --version) || complain "$command --version fails"
    [ "$said" = "$command (dat) $version" ] || complain "$command --version says '$said'"
    "$build/$command" --help >"$work/help" || complain "$command --help fails"
    grep -q -- '--version' "$work/help" || complain "$command --help does not name --version"
    "$build/$command" --version >/dev/full 2>&1 || true # says nothing wrong of its own
    status=0
    "$build/$command" --nonsense >"$work/out" 2>"$work/err" || status=$?
    wanted=2
    [ "$command" != dat_doctor ] || wanted=3
    [ $status -eq $wanted ] || complain "$command --nonsense: status $status, not $wanted"
    [ ! -s "$work/out" ] && [ "$(wc -l <"$work/err")" -eq 1 ] && grep -q "^$command: .*--help" "$work/err" ||
        complain "$command --nonsense: $(cat "$work/out" "$work/err")"
    # Each option is on the manual page.
    grep -q '^\.SH EXAMPLES' "$root/man/$command.1" || complain "man/$command.1 has no examples"
    [ -e "$root/util/command/schema/$command.schema.json" ] || complain "$command has no schema"
    pages=("$build/$command")
    [ "$command" != dat_perf ] || pages=("$build/$command compare" "$build/$command floor" "$build/$command serve")
    for page in "${pages[@]}"; do
        # Unquoted on purpose: a command and its subcommand.
        # shellcheck disable=SC2086
        for option in $($page --help | grep -oE '^ +(-[a-z],)?--[a-z-]+' | grep -oE -- '--[a-z-]+'); do
            sed 's/\\-/-/g' "$root/man/$command.1" | grep -qF -- "$option" ||
                complain "man/$command.1 does not name $option"
        done
    done
done
for wrong in '--check nothing' '--serve --port x' '--peer'; do
    status=0
    # Unquoted on purpose: an option and its value.
    # shellcheck disable=SC2086
    "$build/dat_doctor" $wrong >"$work/out" 2>"$work/err" || status=$?
    [ $status -eq 3 ] && [ "$(wc -l <"$work/err")" -eq 1 ] ||
        complain "dat_doctor $wrong: status $status: $(<"$work/err")"
done
status=0
"$build/dat_info" --on nowhere7 >"$work/out" 2>"$work/err" || status=$?
[ $status -eq 1 ] && grep -q 'nothing is offered on "nowhere7"' "$work/err" ||
    complain "dat_info --on nowhere7: status $status: $(<"$work/err")"
status=0
FI_DAT_IFACE=nowhere7 "$build/dat_info" >"$work/out" 2>"$work/err" || status=$?
[ $status -eq 1 ] && grep -q 'fi_getinfo: -61 .*dat_doctor' "$work/err" ||
    complain "dat_info where nothing is: status $status: $(<"$work/err")"
! "$build/dat_info" >/dev/full 2>/dev/null || complain 'dat_info is content with a full disk'

# --- what is printed ----------------------------------------------------------------

some='limit-files,limit-backlog,variables-known'
FI_DAT_SHM_PEER=x "$build/dat_doctor" --check "$some" >"$work/plain"
! grep -q $'\033' "$work/plain" || complain 'there are colours in a file'
# A terminal, by script(1) or python: colours, unless they are refused.
cat >"$work/terminal.py" <<'PYTHON'
import os, pty, sys
out = b""
def read(fd):
    global out
    data = os.read(fd, 65536)
    out += data
    return b""
pty.spawn(sys.argv[1:], read)
print("coloured" if b"\033[" in out else "plain")
PYTHON
on_terminal() { # expected variable=value...
    local expected=$1 found
    shift
    found=$(env "$@" python3 "$work/terminal.py" "$build/dat_doctor" --check "$some" </dev/null | tail -n 1)
    [ "$found" = "$expected" ] || complain "on a terminal with '$*': $found, not $expected"
}
on_terminal coloured TERM=xterm
on_terminal plain TERM=xterm NO_COLOR=1
on_terminal plain TERM=dumb

"$build/dat_info" >"$work/info" || complain 'dat_info fails'
for words in '^lo  127\.0\.0\.1$' '^  transport   software: iWARP over TCP; memory that two' \
    '^  peers       on this host: processes of the same user through memory' \
    'on other hosts: none, it is the loopback interface' '^  messages    up to 1099511627776 bytes' \
    '^  RDMA        reads and writes, atomics of 8 bytes, 4 remote segments; up to 128 reads on the way'; do
    grep -qE "$words" "$work/info" || complain "dat_info does not say: $words"
done
FI_DAT_SHM=0 "$build/dat_info" --on 127.0.0.1 >"$work/info" || complain 'dat_info --on fails'
grep -q 'every process, over TCP (FI_DAT_SHM=0)' "$work/info" || complain 'FI_DAT_SHM=0 is not told'
[ "$(grep -c '^[a-z]' "$work/info")" -eq 1 ] || complain "--on leaves more than one: $(<"$work/info")"

# --- JSON ---------------------------------------------------------------------------

"$build/dat_doctor" --json >"$work/doctor.json"
status=$?
FI_DAT_SHM_PEER=x FI_DAT_IFACE=nowhere "$build/dat_doctor" --json >"$work/faulty.json"
[ $? -eq 2 ] || complain 'a FAIL is not status 2'
grep -q "\"status\": $status,\$" "$work/doctor.json" || complain 'the status is not in the JSON'
"$build/dat_info" --json >"$work/info.json" || complain 'dat_info --json fails'
"$build/dat_states" --json >"$work/states.json" || complain 'dat_states --json fails'
"$build/dat_perf" compare --rounds 1 --operations 5 --providers dat,no_such --skip-missing \
    --test latency,connect --sizes 8 --json "$work/perf.json" >/dev/null 2>&1 ||
    complain 'dat_perf --json fails'
"$build/dat_top" --once --interval 0.1 --json >"$work/top.json" || complain 'dat_top --json fails'
FI_DAT_TRACE=$work/trace "$build/dat_perf" compare --rounds 1 --operations 5 --providers dat --no-limits \
    --test latency --sizes 8 >/dev/null || complain 'nothing is recorded'
"$build/dat_trace" --json "$work"/trace* >"$work/trace.json" || complain 'dat_trace --json fails'
grep -q '"operations": [1-9]' "$work/trace.json" || complain "no operation is recorded: $(<"$work/trace.json")"
echo '{"command": "dat_doctor"}' >"$work/wrong.json"
sed 's/"mend"/"remedy"/' "$work/faulty.json" >"$work/changed.json"
schema=$root/util/command/schema
python=python3
$python -c 'import jsonschema' 2>/dev/null || python=/usr/bin/python3
validated=0
$python "$root/test/command/validate.py" \
    "$schema/dat_doctor.schema.json" "$work/doctor.json" \
    "$schema/dat_doctor.schema.json" "$work/faulty.json" \
    "$schema/dat_info.schema.json" "$work/info.json" \
    "$schema/dat_states.schema.json" "$work/states.json" \
    "$schema/dat_perf.schema.json" "$work/perf.json" \
    "$schema/dat_top.schema.json" "$work/top.json" \
    "$schema/dat_trace.schema.json" "$work/trace.json" \
    --refuse "$schema/dat_doctor.schema.json" "$work/wrong.json" \
    --refuse "$schema/dat_doctor.schema.json" "$work/changed.json" || validated=$?
[ $validated -eq 0 ] || complain "JSON and schemas: status $validated"

# --- bash completion ----------------------------------------------------------------

# What is offered behind the words; the last of them is being typed.
completed() { # words...
    PATH=$build:$PATH bash -c '
        . "$1" || exit 1
        shift
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        function=$(complete -p "$1" | sed -n "s/.*-F \([a-z_]*\) .*/\1/p")
        "$function" "$1"
        printf "%s " "${COMPREPLY[@]}"' bash "$root/util/command/completion.bash" "$@"
}
offers() { # expected words...
    local expected=$1 found
    shift
    found=$(completed "$@" | xargs -n 1 2>/dev/null | sort | xargs)
    [ "$found" = "$expected" ] || complain "completion of '$*': '$found', not '$expected'"
}
offers '--peer --port' dat_doctor --p
offers '--json' dat_info --j
offers 'dot json man md' dat_states --format ''
offers 'man md' dat_states --format m
offers 'compare' dat_perf comp
offers '--seconds --senders --sizes --skip-missing --svg' dat_perf compare --s
offers '--pid --prometheus' dat_top --p
offers 'ends' dat_top e
offers '--summary' dat_trace --s
cd "$work" || exit 1
offers 'trace.json' dat_trace trace.j
offers 'perf.json' dat_perf compare --baseline perf
cd - >/dev/null || exit 1
offers '--seconds --sizes --svg' dat_perf floor --s
offers 'limit-backlog limit-files limit-locked limit-memory limit-ports' dat_doctor --check lim

[ $bad -eq 0 ] && echo 'commands: all right'
[ $bad -eq 0 ]
