# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The names that a source has for itself, in an anonymous namespace or as static: those by which two
# sources cannot be compiled as one; and which can. For test/check/tidy.sh and test/batched.sh.

# Reads a source. Afterwards `lines[path]` is their number, `text[path]` what it says,
# `names[path]` has the names behind a space each, and `sharers[NAME]` counts the sources with NAME.
function read_own_names(path,    line, inside) {
    while ((getline line <path) > 0) {
        lines[path]++
        text[path] = text[path] line "\n"
        sub(/^\[\[[a-z:_]*\]\] /, "", line)
        if (line ~ /^namespace [{]/) inside = 1
        else if (line ~ /^[}] \/\/ namespace$/) inside = 0
        else if ((inside || line ~ /^(static |int main[(])/) && line ~ /^[A-Za-z]/ && line !~ /^using [^=]*;/) {
            if (match(line, /^(struct|class|enum class|enum|union) [A-Za-z_0-9]+/)) {
                sub(/^(enum class|[a-z]+) /, "", line)
                sub(/[^A-Za-z_0-9].*/, "", line)
                own_name(path, line)
            } else if (match(line, /[A-Za-z_][A-Za-z_0-9]*( =|[;{[(])/)) {
                line = substr(line, RSTART, RLENGTH)
                sub(/[^A-Za-z_0-9].*/, "", line)
                own_name(path, line)
            }
        }
    }
    close(path)
}

function own_name(path, name) {
    if (name == "static_assert" || (name, path) in has_own) return
    has_own[name, path] = 1
    names[path] = names[path] " " name
    ++sharers[name]
}

# Puts a source into the group from 1 to `groups` that has the most room and none of the names in
# `list`, or else into a new one. Returns its number. `load[GROUP]` counts its lines, and
# `taken[NAME, GROUP]` has the names.
function place(path, list,    own, n, i, group, best) {
    n = split(list, own, " ")
    for (group = 1; group <= groups; group++) {
        for (i = 1; i <= n && !((own[i], group) in taken); i++) {}
        if (i > n && (!best || load[group] < load[best])) best = group
    }
    if (!best) best = ++groups
    for (i = 1; i <= n; i++) taken[own[i], best] = 1
    load[best] += lines[path]
    return best
}
