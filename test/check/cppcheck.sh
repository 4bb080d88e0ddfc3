#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Nothing in what is installed is warned of by cppcheck. A finding that is none has a comment
# "cppcheck-suppress ID" with the reason above its place. Each source is looked at as one set of options
# has it: that is what takes the time.
set -u
. "$(dirname "${BASH_SOURCE[0]}")/sources.sh"
command -v cppcheck >/dev/null || skip 'cppcheck is not installed'
case $(cppcheck --version) in
*' 2.10'*) ;;
*) skip "$(cppcheck --version) is not version 2.10, and others find other things" ;;
esac

options=(
    --enable=warning --enable=portability --inline-suppr --language=c++ --std=c++20 --error-exitcode=1 --quiet
    -j"$(nproc)" --max-configs=1 -DHAVE_CONFIG_H -DHAVE_LIBPMEM -Iprov/dat -Iprov -Iinclude -Iutil
    # In C++ that does not compile.
    --suppress=CastIntegerToAddressAtReturn
    # Slots and rings are not written when they are made, but when something goes into them.
    --suppress=uninitMemberVar
    # A path of posts differs from the one that it is made of by constants of the same names.
    --suppress=duplInheritedMember
    # Its page is written by the build.
    --suppress=internalAstError:util/trace/page.cpp
)

mapfile -t files < <(sources prov util -- '*.cpp' | grep -v /udat12/)
[ ${#files[@]} -gt 200 ] || { echo "only ${#files[@]} sources were found"; exit 1; }
status=0
cppcheck "${options[@]}" -DDAT_SHIM_API=20 "${files[@]}" || status=1
cppcheck "${options[@]}" -DDAT_SHIM_API=12 prov/dat-shim/udat12/*.cpp || status=1
[ $status -eq 0 ] && echo "${#files[@]} sources, nothing to warn of"
exit $status
