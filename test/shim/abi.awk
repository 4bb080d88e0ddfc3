# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Makes a C program from test/spec/dat2-abi.txt or dat12-abi.txt, which says every size,
# offset and value in it that the headers have otherwise, and then how many it looked at.
# Variables: `folder`, of the headers, and `least`, how many there must be.

function expect(what, value, wanted) {
    printf "    expect(\"%s\", (long long)(%s), (long long)(%s));\n", what, value, wanted
}

BEGIN {
    print "#include <netinet/in.h>"
    print "#include <" folder "/udat.h>"
    print "#include <" folder "/dat_registry.h>"
    if (folder == "dat2") print "#include <dat2/dat_ib_extensions.h>"
    print "#include <stdio.h>\n#include <string.h>\nstatic int seen, wrong;"
    print "static void expect(const char* what, long long value, long long wanted) {"
    print "    ++seen;"
    print "    if (value != wanted) { ++wrong; printf(\"%s is %lld, not %lld\\n\", what, value, wanted); }\n}"
    print "int main(void) {"
    # Not values: text for the compiler, and one whose name is broken in the reference.
    split("DAT_EXPORT DAT_IA_HA_RELATED DAT_OS_WAIT_PROXY_AGENT_NULL DAT_PROVIDER_FINI_FUNC_NAME " \
          "DAT_PROVIDER_INIT_FUNC_NAME DAT_RMR_BIND_COMPLETION_STATUS " \
          "DAT_IA_FIELD_IA_MAX_DTO_PER_OP", list, " ")
    for (i in list) no_value[list[i]] = 1
}

/^type / {
    split($3, size, "="); split($4, align, "=")
    expect("sizeof " $2, "sizeof(" $2 ")", size[2])
    expect("alignof " $2, "_Alignof(" $2 ")", align[2])
}

/^enum / || /^struct / {
    kind = $1
    name = $2 == $1 ? $2 " " $3 : $2
    for (i = 3; i <= NF; ++i) {
        if (split($i, part, "=") == 2 && part[1] == "size") expect("sizeof " name, "sizeof(" name ")", part[2])
        if (split($i, part, "=") == 2 && part[1] == "align") expect("alignof " name, "_Alignof(" name ")", part[2])
    }
}

/^  / && kind == "enum" { expect($1, $1, $3) }

/^  / && kind == "struct" {
    split($2, offset, "="); split($3, size, "=")
    expect(name "." $1, "offsetof(" name ", " $1 ")", offset[2])
    expect("sizeof " name "." $1, "sizeof(((" name "*)0)->" $1 ")", size[2])
}

/^macro / {
    kind = ""
    text = $0
    sub(/^macro [A-Z0-9_a-z]+ = /, "", text)
    if ($2 in no_value) next
    if (text ~ /^"/) printf "    expect(\"%s\", strcmp(%s, %s), 0);\n", $2, $2, text
    else expect($2, $2, text)
}

END {
    print "    printf(\"%d sizes, offsets and values, %d wrong\\n\", seen, wrong);"
    print "    return seen < " least " || wrong != 0;\n}"
}
