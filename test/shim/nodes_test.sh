#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# A program that was linked to another libdat.so.1 runs with ours, whichever version nodes that
# one had (U-70): SUNW_1.1, DAT_1.2, or none. The other one is made here of the names alone. And a
# program that is linked to ours asks for DAT_1.2, and finds by name at run time what it calls.
set -u

root=${DAT_SRCDIR:-$(dirname "${BASH_SOURCE[0]}")/../..}
ours=${DAT_BUILDDIR:-.}/.libs
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
export FI_PROVIDER=none
unset DAT_OVERRIDE LD_PRELOAD

command -v cc >/dev/null || { echo 'SKIP: there is no C compiler'; exit 77; }
names=$(sed -nE 's/^ +(dat_[a-z0-9_]+);$/\1/p' "$root/prov/dat-shim/udat12/libdat.map")
[ "$(echo "$names" | wc -l)" -eq 72 ] || { echo 'FAIL: libdat.map does not name 72 functions'; exit 1; }

# Needs all of the names, and does something with some.
{
    echo '#define _GNU_SOURCE'
    echo '#include <dat/udat.h>'
    echo '#include <dat/dat_registry.h>'
    echo '#include <dlfcn.h>'
    echo '#include <stdio.h>'
    echo 'static const struct { const char *name; void *function; } all[] = {'
    # shellcheck disable=SC2001
    echo "$names" | sed 's/.*/{"&", (void *)&},/'
    echo '};'
    cat <<'END'
int main(void)
{
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL, evd;
	DAT_EVENT event;
	DAT_COUNT count = 0;
	unsigned i, other = 0;

	for (i = 0; i < sizeof all / sizeof *all; ++i)
		if (dlsym(RTLD_DEFAULT, all[i].name) != all[i].function ||
		    dlvsym(RTLD_DEFAULT, all[i].name, "SUNW_1.1") != all[i].function ||
		    dlvsym(RTLD_DEFAULT, all[i].name, "DAT_1.2") != all[i].function)
			++other;
	if (dat_ia_open("lo", 8, &async, &ia) != DAT_SUCCESS ||
	    dat_evd_create(ia, 1, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &evd) != DAT_SUCCESS ||
	    DAT_GET_TYPE(dat_evd_dequeue(evd, &event)) != DAT_QUEUE_EMPTY ||
	    dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG) != DAT_SUCCESS ||
	    DAT_GET_TYPE(dat_registry_list_providers(0, &count, NULL)) != DAT_INVALID_PARAMETER ||
	    count == 0)
		return 1;
	printf("%u functions, %u of them another by its name\n", i, other);
	return other != 0;
}
END
} >"$work/program.c"
{
    echo '#include <stdlib.h>'
    # Not what is to run: it ends the program.
    # shellcheck disable=SC2001
    echo "$names" | sed 's/.*/void &(void); void &(void) { abort(); }/'
} >"$work/other.c"

# What a program is linked to, as $work/NAME/libdat.so.
other() { # name [node]
    mkdir "$work/$1" || return
    local flags=()
    if [ -n "${2:-}" ]; then
        echo "$2 { global: dat_*; local: *; };" >"$work/$1/map"
        flags=("-Wl,--version-script=$work/$1/map")
    fi
    cc -shared -fPIC -Wl,-soname,libdat.so.1 "${flags[@]}" "$work/other.c" -o "$work/$1/libdat.so"
}

runs() { # title folder [node that the program asks for]
    local wanted
    if ! cc -I"$root/include" "$work/program.c" -o "$work/program" -L"$2" -ldat 2>"$work/log"; then
        echo "FAILED: $1: not linked"
        head "$work/log"
        failed=1
        return
    fi
    wanted=$(objdump -T "$work/program" | grep -oE '[^ ]+ +dat_ia_openv$')
    if { [ -n "${3:-}" ] && [[ $wanted != *$3* ]]; } || { [ -z "${3:-}" ] && [[ $wanted == *[._]1.* ]]; }; then
        echo "FAILED: $1: it asks for $wanted"
        failed=1
        return
    fi
    if LD_BIND_NOW=1 LD_LIBRARY_PATH=$ours timeout -k 1 60 "$work/program" >"$work/log" 2>&1; then
        echo "passed: $1: $(tail -n 1 "$work/log")"
    else
        echo "FAILED: $1: status $?"
        cat "$work/log"
        failed=1
    fi
}

other sunw SUNW_1.1 && other dat DAT_1.2 && other none || exit 1
runs 'linked to one with SUNW_1.1' "$work/sunw" SUNW_1.1
runs 'linked to one with DAT_1.2' "$work/dat" DAT_1.2
runs 'linked to one without versions' "$work/none"
runs 'linked to this one' "$ours" DAT_1.2
exit $failed
