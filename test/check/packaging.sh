#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The packaging is of one piece: the version stands in configure.ac alone, each file that is
# installed goes into one Debian and one RPM package, what they build-depend on is what util/packages.sh
# installs, and what can be parsed is: the bill of materials, dat.spec, Spack's recipe, the
# module file, the Containerfile, the workflow. A tool that is missing is said, and is no failure where only it is.
set -u
. "$(dirname "${BASH_SOURCE[0]}")/sources.sh"
root=$PWD
packaging=util/packaging
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
bad=0
complain() {
    echo "$*"
    bad=1
}
number() { sed -nE "s/^m4_define\(\[dat_version_$1\], \[([0-9]+)\]\)$/\1/p" configure.ac; }
version=$(number major).$(number minor).$(number patch)

# --- the version --------------------------------------------------------------

[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || complain "configure.ac: no version: $version"
news=$(grep -m 1 -oE '^[0-9]+\.[0-9]+\.[0-9]+ \(([0-9-]{10}|not released)\)$' $packaging/NEWS)
[ "${news%% *}" = "$version" ] || complain "NEWS begins with \"$news\", and configure.ac has $version"
grep -q "^Version ${version%.*}[,.]" README.md || complain "README.md does not say: Version ${version%.*}"
for file in $packaging/debian/* $packaging/*.in $packaging/Containerfile $packaging/spack/packages/dat/package.py; do
    [ ! -f "$file" ] || ! grep -nF "$version" "$file" || complain "$file names the version"
done

# --- what a distribution gets, without making one ---------------------------------

mkdir -p "$work/dist/util/packaging"
if bash $packaging/dist.sh "$root" "$work/dist" 9.8.7 1700000000; then
    [ "$(head -n 1 "$work/dist/debian/changelog")" = 'dat (9.8.7-1) unstable; urgency=medium' ] ||
        complain "debian/changelog begins: $(head -n 1 "$work/dist/debian/changelog")"
    grep -qx 'Version: *9.8.7' "$work/dist/dat.spec" || complain 'dat.spec has another version'
    [ -x "$work/dist/debian/rules" ] || complain 'debian/rules cannot be executed'
else
    complain "$packaging/dist.sh failed"
fi
python3 - "$work/dist/util/packaging/dat.spdx.json" <<'END' || complain 'the bill of materials is wrong'
import json, sys
bill = json.load(open(sys.argv[1]))
assert bill["spdxVersion"] == "SPDX-2.3" and bill["dataLicense"] == "CC0-1.0"
ids = [p["SPDXID"] for p in bill["packages"]]
assert len(ids) == len(set(ids)), ids
named = {p["name"] for p in bill["packages"]}
assert {"dat", "libfabric", "libibverbs", "librdmacm", "criterion", "rapidcheck", "fmt"} <= named, named
for relation in bill["relationships"]:
    assert relation["relatedSpdxElement"] in ids, relation
    assert relation["spdxElementId"] in ids + ["SPDXRef-DOCUMENT"], relation
assert {r["spdxElementId"] for r in bill["relationships"]} == set(ids) - {"SPDXRef-dat"} | {"SPDXRef-DOCUMENT"}
END

# --- each installed file has one package ------------------------------------------

# What `make install` puts under /usr, in the words of the lists: from the Makefile fragments, since the
# build at hand may leave out some.
cat >"$work/installed" <<'END'
usr/lib/x/libfabric/libdat-fi.so
usr/lib/x/dat/libdat2.so
usr/lib/x/dat/libdat2.so.2
usr/lib/x/dat/libdat2.so.2.0.0
usr/lib/x/dat/libdat.so
usr/lib/x/dat/libdat.so.1
usr/lib/x/dat/libdat.so.1.0.0
usr/include/rdma/fi_ext_dat.h
usr/lib/x/dat/rpma/librpma.so
usr/lib/x/dat/rpma/librpma.so.0
usr/lib/x/dat/rpma/librpma.so.0.0.0
usr/include/dat/rpma/librpma.h
usr/share/bash-completion/completions/dat_doctor
usr/share/dat/schema/dat_doctor.schema.json
usr/share/dat/x/ld.so.conf
END
find include/dat include/dat2 -name '*.h' | sed 's,^include/,usr/include/dat/,' >>"$work/installed"
find . -maxdepth 1 -name '*.pc.in' | sed 's,^\./\(.*\)\.in$,usr/lib/x/pkgconfig/\1,' >>"$work/installed"
find man -name '*.[1-8]' | sed 's,^man/\(.*\)\.\([1-8]\)$,usr/share/man/man\2/\1.\2,' >>"$work/installed"
grep -hoE '^bin_PROGRAMS \+= .*' util/Makefile.include util/perf/Makefile.include | cut -d' ' -f3- |
    tr ' ' '\n' | sed 's,^,usr/bin/,' >>"$work/installed"
while read -r file; do
    packages=
    for list in "$packaging"/debian/*.install; do
        while read -r pattern; do
            # shellcheck disable=SC2254 # it is a pattern
            case $file in
            $pattern | $pattern/*) packages="$packages ${list##*/}" ;;
            esac
        done <"$list"
    done
    set -- $packages
    [ $# -eq 1 ] || complain "$file is in $# Debian packages:$packages"
done <"$work/installed"

# The packages of both are the same, by another name where the customs differ.
debian=$(sed -n 's/^Package: //p' $packaging/debian/control | sort)
rpm=$(sed -nE 's/^%package -n //p; s/^%package /dat-/p' $packaging/dat.spec.in |
    sed 's/-devel$/-dev/' | sort)
[ "$debian" = "$rpm" ] || complain "Debian's packages and RPM's differ:
$(diff <(echo "$debian") <(echo "$rpm"))"
for package in $debian; do
    [ -f "$packaging/debian/$package.install" ] || complain "$packaging/debian/$package.install is missing"
done

# --- dependencies -------------------------------------------------------------------

depends=$(sed -n '/^Build-Depends:/,/^[A-Z][^:]*: /p' $packaging/debian/control | sed -nE 's/^ ([a-z0-9.+-]+).*/\1/p' |
    grep -v '^debhelper-compat$' | sort)
known=$(bash util/packages.sh --list build test | sort -u)
unknown=$(comm -23 <(echo "$depends") <(echo "$known"))
[ -z "$unknown" ] || complain "debian/control build-depends on what util/packages.sh does not install: $unknown"
while read -r name; do
    case $name in
    Tests:*) for test in ${name#Tests:}; do
        [ -x "$packaging/debian/tests/$test" ] || complain "debian/tests/$test cannot be executed"
    done ;;
    esac
done <"$packaging/debian/tests/control"

# --- what can be parsed --------------------------------------------------------------

missing=
if command -v rpmspec >/dev/null; then
    rpmspec -P "$work/dist/dat.spec" >"$work/spec" 2>"$work/log" || complain "rpmspec -P: $(<"$work/log")"
else
    missing="$missing rpmspec (Debian: rpm)"
fi
PYTHONPYCACHEPREFIX=$work/cache python3 -m py_compile $packaging/spack/packages/dat/package.py ||
    complain "Spack's recipe does not compile"
# Environment Modules are Tcl, whose words are given here what they do.
if command -v tclsh >/dev/null; then
    sed -e 's/@PACKAGE_VERSION@/9.8.7/; s/@enable_udapl@/yes/; s,@MODULE_\([A-Z]*\)@,/there/\1,' \
        $packaging/modulefile.in >"$work/module"
    cat >"$work/words.tcl" <<'END'
foreach word {module-whatis conflict} { proc $word args {} }
proc append-path {name folder} { puts "$name $folder" }
proc prepend-path {name folder} { puts "$name $folder" }
source [lindex $argv 0]
ModulesHelp
END
    tclsh "$work/words.tcl" "$work/module" >"$work/paths" 2>"$work/log" || complain "the module file: $(<"$work/log")"
    [ "$(wc -l <"$work/paths")" -eq 5 ] && grep -qx 'FI_PROVIDER_PATH /there/PROVDIR' "$work/paths" ||
        complain "the module file sets: $(<"$work/paths")"
    ! grep -n '@' "$work/module" || complain 'the module file has a placeholder that nothing replaces'
else
    missing="$missing tclsh (Debian: tcl)"
fi
# What the Containerfile copies is there, and each of its lines begins with a known word.
sed -e ':a' -e '/\\$/N; s/\\\n//; ta' -e '/^#/d; /^$/d' $packaging/Containerfile |
    while read -r word rest; do
        case $word in
        FROM | RUN | USER | CMD) ;;
        COPY)
            case $rest in
            --from=*) continue ;;
            esac
            for source in ${rest% *}; do [ -e "$source" ] || echo "Containerfile: $source is not there"; done
            ;;
        *) echo "Containerfile: unknown word: $word" ;;
        esac
    done >"$work/container"
[ ! -s "$work/container" ] || complain "$(<"$work/container")"
for workflow in .github/workflows/*.yml; do
    [ -f "$workflow" ] || { complain 'there is no workflow under .github'; break; }
    if python3 -c 'import yaml' 2>/dev/null; then
        python3 - "$workflow" <<'END' || complain "$workflow is wrong"
import sys, yaml
flow = yaml.safe_load(open(sys.argv[1]))
assert flow["jobs"] and (True in flow or "on" in flow)  # "on" is a truth value of YAML 1.1
for name, job in flow["jobs"].items():
    assert job["runs-on"] and job["steps"], name
    for step in job["steps"]:
        assert ("uses" in step) != ("run" in step), (name, step)
END
    else
        missing="$missing python3-yaml"
    fi
done
[ -z "$missing" ] || echo "not parsed, for want of:$missing"
[ $bad -eq 0 ] && echo "version $version, $(wc -l <"$work/installed") installed files in $(wc -w <<<"$debian") packages"
exit $bad
