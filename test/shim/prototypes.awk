# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# From headers: a C file that compiles only where each function that they declare has that
# very type.

BEGIN {
    print "#include <netinet/in.h>\n#include <dat2/udat.h>\n#include <dat2/dat_registry.h>"
}

/^extern DAT_RETURN DAT_API / { declaration = ""; inside = 1 }

inside {
    declaration = declaration " " $0
    if ($0 ~ /\);/) {
        inside = 0
        sub(/^ *extern DAT_RETURN DAT_API /, "", declaration)
        name = declaration
        sub(/\(.*/, "", name)
        sub(/^[a-z_0-9]+/, "", declaration)
        sub(/;.*/, "", declaration)
        printf "_Static_assert(__builtin_types_compatible_p(__typeof__(&%s), DAT_RETURN(*)%s), \"%s\");\n",
               name, declaration, name
        ++count
    }
}

END { printf "/* %d functions */\n", count }
