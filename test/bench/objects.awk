# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Adds up what callgrind counted in each object (program, library): reads its file,
# written with --compress-strings=no --compress-pos=no, prints "INSTRUCTIONS OBJECT".
# The line behind calls= is the sum of what was called, which stands elsewhere too.
/^ob=/ { object = substr($0, 4) }
/^calls=/ { getline; next }
/^[0-9]+ [0-9]+$/ { cost[object] += $2 }
END {
    for (o in cost) {
        name = o
        sub(/.*\//, "", name)
        print cost[o], name
    }
}
