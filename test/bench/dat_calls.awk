# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Adds up what callgrind counted by what the instructions are of: reads its file, written
# with --compress-strings=no --compress-pos=no, prints "INSTRUCTIONS WHAT", where WHAT is
#   dat_...   that entry point, with what is inlined into it
#   shim      other functions of the uDAPL library's own
#   below     the provider, libc and what else is called
# The program that calls is left out. The line behind calls= is the sum of what was
# called, which stands elsewhere too.
/^ob=/ { own = /libdat2\.so/; program = /dat_calls$/ }
/^fn=/ {
    name = substr($0, 4)
    sub(/'[0-9]+$/, "", name)
    what = !own ? "below" : name ~ /^dat_/ ? name : name ~ /^dat::shim::/ ? "shim" : "below"
}
/^calls=/ { getline; next }
/^[0-9]+ [0-9]+$/ { if (!program) cost[what] += $2 }
END {
    for (w in cost) {
        print cost[w], w
    }
}
