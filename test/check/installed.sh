#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What `make install` puts where. With the configure line of README.md that installs beside
# Debian's libfabric, no file of Debian's uDAPL packages (test/spec/debian-dapl.txt) is overwritten,
# nor a manual page of theirs hidden. The uDAPL libraries are in the folder that configure was told, and
# nothing of uDAPL is there where it was left out; what was installed is gone after `make uninstall`.
set -u
unset MAKEFLAGS MFLAGS MAKELEVEL # of the make that runs this

root=${DAT_SRCDIR:-$(dirname "${BASH_SOURCE[0]}")/../..}
build=${DAT_BUILDDIR:-.}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
bad=0
complain() {
    echo "$*"
    bad=1
}

# Where README.md's line puts the two folders; other options it may not have, since this
# build has not been configured with them.
line=$(grep -m 1 '^    \./configure --prefix=/usr ' "$root/README.md")
[[ $line =~ ^\ {4}\./configure\ --prefix=(/[^ ]*)\ --libdir=(/[^ ]*)$ ]] ||
    { echo "README.md has no line of configure as expected: $line"; exit 1; }
readme_prefix=${BASH_REMATCH[1]} readme_libdir=${BASH_REMATCH[2]}

read -r prefix libdir udapldir < <(make -s -C "$build" dat-list-places)
case $libdir in
"$prefix"/*) ;;
*) echo "SKIP: the library folder $libdir is not under $prefix"; exit 77 ;;
esac
make -C "$build" install DESTDIR="$work/stage" >"$work/log" 2>&1 || {
    tail "$work/log"
    echo 'make install failed'
    exit 1
}
find "$work/stage" ! -type d | sed "s,^$work/stage,," | sort >"$work/installed"
[ -s "$work/installed" ] || complain 'nothing was installed'
sed -e "s,^$libdir/,$readme_libdir/," -e t -e "s,^$prefix/,$readme_prefix/," "$work/installed" |
    sed 's/\(\/man\/.*\)\.gz$/\1/' | sort >"$work/ours"
grep '^/' "$root/test/spec/debian-dapl.txt" | sed 's/\(\/man\/.*\)\.gz$/\1/' | sort >"$work/theirs"
grep -q '/libdat2\.so\.2$' "$work/theirs" || complain 'test/spec/debian-dapl.txt lacks libdat2.so.2'
both=$(comm -12 "$work/ours" "$work/theirs")
[ -z "$both" ] || complain "$line
would overwrite of Debian's packages:
$both"

sed -e "s,^$libdir/,LIB/," -e t -e "s,^$prefix/,," "$work/installed" |
    grep -vE -e '^LIB/libfabric/libdat-fi\.(so|la)$' -e '^LIB/pkgconfig/libdat-fi\.pc$' \
        -e '^include/rdma/fi_ext_dat\.h$' -e '^bin/dat_(doctor|info|perf|states|top|trace)$' \
        -e '^share/man/man1/dat_(doctor|info|perf|states|top|trace)\.1$' \
        -e '^share/bash-completion/completions/dat_[a-z]+$' -e '^share/dat/schema/dat_[a-z]+\.schema\.json$' \
        -e '^share/man/man7/(fi_dat|dat_ep_states|dat_mpi|dat_verbs|dat_capture)\.7$' \
        >"$work/others"
# librpma has folders of its own, where it was not left out.
grep -E -e '^LIB/dat/rpma/librpma\.(so(\.0(\.0\.0)?)?|la)$' -e '^LIB/pkgconfig/librpma\.pc$' \
    -e '^include/dat/rpma/librpma\.h$' -e '^share/man/man7/rpma_shim\.7$' "$work/others" \
    >"$work/rpma"
grep -vxFf "$work/rpma" "$work/others" >"$work/udapl"
if [ "${DAT_RPMA:-yes}" = no ]; then
    [ ! -s "$work/rpma" ] || complain "without librpma these are installed:
$(<"$work/rpma")"
else
    [ "$(wc -l <"$work/rpma")" -eq 7 ] || complain "of librpma these are installed:
$(<"$work/rpma")"
fi
if [ "${DAT_UDAPL:-yes}" = no ]; then
    [ ! -s "$work/udapl" ] || complain "without uDAPL these are installed:
$(<"$work/udapl")"
else
    for name in libdat2.so.2 libdat.so.1; do
        [ -e "$work/stage$udapldir/$name" ] || complain "$name is not installed in $udapldir"
        told=$(PKG_CONFIG_PATH=$work/stage$libdir/pkgconfig pkg-config --variable=udapldir "${name%.so.*}")
        [ "$told" = "$udapldir" ] || complain "pkg-config says that $name is in $told"
    done
fi

# By a file of /etc/ld.so.conf.d whose name is the first, a program of others finds the library,
# also where there is another of its name.
named() {
    ldconfig -f "$work/ld.so.conf" -C "$work/cache" &&
        unshare --mount sh -c 'mount --bind "$1" /etc/ld.so.cache && ldd "$2"' sh "$work/cache" "$1"
}
if [ "${DAT_UDAPL:-yes}" != no ]; then
    folder=$(dirname "$(find "$work/stage" -name libdat2.so.2)")
    program=$(command -v dtest) || program=
    printf '%s\n' "$folder" 'include /etc/ld.so.conf' >"$work/ld.so.conf"
    if [ -z "$program" ] || ! unshare --mount true 2>/dev/null; then
        echo 'not looked at: /etc/ld.so.conf.d, for want of dtest (Debian: dapl2-utils) or permission'
    elif ! named "$program" | grep -qF "libdat2.so.2 => $folder/libdat2.so.2 "; then
        complain "with its folder named first, dtest finds: $(named "$program" | grep libdat2)"
    fi
fi

make -C "$build" uninstall DESTDIR="$work/stage" >"$work/log" 2>&1 || complain 'make uninstall failed'
left=$(find "$work/stage" ! -type d)
[ -z "$left" ] || complain "make uninstall leaves:
$left"
[ $bad -eq 0 ] && echo "$(wc -l <"$work/installed") files are installed, $(wc -l <"$work/udapl") of uDAPL," \
    "none of $(wc -l <"$work/theirs") of Debian's"
exit $bad
