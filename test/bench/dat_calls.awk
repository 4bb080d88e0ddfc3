# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Adds up what callgrind counted by what the instructions are of: reads its file, written
# with --compress-strings=no --compress-pos=no, prints "INSTRUCTIONS WHAT", where WHAT is
#   shim      lines of prov/dat-shim, whatever function they are inlined into
#   below     all other lines: the provider's, those of headers of the compiler, libc
# The program that calls is left out. The line behind calls= is the sum of what was
# called, which stands elsewhere too.
/^ob=/ { program = /(dat|fi)_calls$/ }
/^f[lie]=/ { what = /\/prov\/dat-shim\// ? "shim" : "below" }
/^calls=/ { getline; next }
/^[0-9]+ [0-9]+$/ { if (!program) cost[what] += $2 }
END {
    print cost["shim"] + 0, "shim"
    print cost["below"] + 0, "below"
}
