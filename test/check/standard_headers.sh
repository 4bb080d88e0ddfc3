#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What a source names of the C++ library's headers that most builds of test/run.sh have in each
# source (test/precompiled.sh), it includes, or a header of ours that it includes does: those builds
# would compile without.
set -u
. "$(dirname "${BASH_SOURCE[0]}")/sources.sh"

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# A header, and what is named of it: in std, or anywhere where = is before it.
cat >"$work/names" <<'NAMES'
algorithm min max clamp minmax sort stable_sort find find_if any_of all_of none_of copy copy_n fill fill_n equal count count_if remove_if lower_bound upper_bound reverse partition transform replace rotate max_element min_element for_each unique mismatch search is_sorted ranges
array array to_array
atomic atomic atomic_ref atomic_thread_fence atomic_signal_fence memory_order memory_order_relaxed memory_order_acquire memory_order_release memory_order_acq_rel memory_order_seq_cst
cerrno =errno
chrono chrono
csignal signal =sigaction =sigset_t =SIGKILL =SIGTERM =SIGINT =SIGSEGV =SIGBUS =SIGPIPE =SIGCHLD =SIGSTOP =SIGCONT =SIGALRM =SIGUSR1 =SIG_IGN =SIG_DFL
cstddef size_t ptrdiff_t byte nullptr_t max_align_t =offsetof
cstdint int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t intmax_t uintmax_t =SIZE_MAX =UINT16_MAX =UINT32_MAX =UINT64_MAX =INT32_MAX =INT64_MAX
cstdio printf fprintf vfprintf snprintf vsnprintf puts fputs fopen fclose fread fwrite fgets fflush perror putchar sscanf FILE =stderr =stdout
cstdlib getenv exit _Exit quick_exit abort atexit malloc calloc realloc free aligned_alloc abs atoi strtol strtoul strtoll strtoull strtod system =EXIT_SUCCESS =EXIT_FAILURE
cstring memcpy memset memcmp memmove memchr strlen strcmp strncmp strerror strchr strrchr strstr strcpy strncpy strcspn strspn
deque deque
fstream fstream ifstream ofstream
functional function hash less greater bind ref cref invoke reference_wrapper plus equal_to
map map multimap
memory unique_ptr shared_ptr weak_ptr make_unique make_shared addressof enable_shared_from_this construct_at destroy_at align assume_aligned to_address allocator
mutex mutex recursive_mutex lock_guard unique_lock scoped_lock once_flag call_once defer_lock adopt_lock try_to_lock
new nothrow bad_alloc align_val_t launder
optional optional nullopt make_optional
span span as_bytes as_writable_bytes dynamic_extent
string string to_string stoi stol stoul stoull getline
string_view string_view
thread thread jthread this_thread
utility move forward exchange pair make_pair swap declval as_const index_sequence make_index_sequence cmp_less cmp_equal
vector vector
NAMES

# Prints a line for each header that is missing in one of the sources whose paths it reads: of the
# rest, those behind `also`, only what they include counts. A folder's name in front is `from`.
missing() { # from
    awk -v from="$1" -v names="$work/names" '
        # Without what is in quotes, and comments.
        function code(line) {
            gsub(/\\./, "", line)
            gsub(/"[^"]*"/, "\"\"", line)
            sub(/\/\/.*/, "", line)
            gsub(/\/\*([^*]|\*[^\/])*\*\//, "", line)
            if (inside && sub(/^.*\*\//, "", line)) inside = 0
            if (inside) return ""
            if (sub(/\/\*.*/, "", line)) inside = 1
            return line
        }
        function read_source(path,    line, name) {
            inside = 0
            while ((getline line <(from path)) > 0) {
                if (match(line, /^[ \t]*#[ \t]*include[ \t]*[<"][^>"]*/)) {
                    name = substr(line, RSTART, RLENGTH)
                    sub(/^[^<"]*/, "", name)
                    if (name ~ /^<rdma\//) gives[path, "errno.h"] = 1
                    if (name ~ /^</) gives[path, substr(name, 2)] = 1
                    else own[path] = own[path] " " substr(name, 2)
                } else text[path] = text[path] " " code(line) "\n"
            }
            close(from path)
        }
        function place_of(path, name,    i, folder, found) {
            folder = path
            sub(/[^\/]*$/, "", folder)
            for (i = 0; i <= places + 1; i++) {
                found = (i ? place[i] : folder) name
                while (sub(/[^\/.]+\/\.\.\//, "", found)) continue
                if (found in text) return found
            }
            return ""
        }
        function includes(path, header,    list, i, n, next_one) {
            if (seen[path]++) return 0
            if (((path, header) in gives) || ((path, c_name[header]) in gives)) return 1
            n = split(own[path], list, " ")
            for (i = 1; i <= n; i++) {
                next_one = place_of(path, list[i])
                if (next_one != "" && includes(next_one, header)) return 1
            }
            return 0
        }
        BEGIN {
            places = split("prov/dat/ prov/ include/ util/ test/", place, " ")
            while ((getline line <names) > 0) {
                n = split(line, word, " ")
                header = word[1]
                c_name[header] = header ~ /^c/ ? substr(header, 2) ".h" : header
                in_std = anywhere = ""
                for (i = 2; i <= n; i++)
                    if (word[i] ~ /^=/) anywhere = anywhere "|" substr(word[i], 2)
                    else in_std = in_std "|" word[i]
                pattern[header] = "std::(" substr(in_std, 2) ")[^A-Za-z0-9_]"
                if (in_std == "") pattern[header] = "(" substr(anywhere, 2) ")[^A-Za-z0-9_]"
                else if (anywhere != "")
                    pattern[header] = pattern[header] "|[^A-Za-z0-9_.>](" substr(anywhere, 2) ")[^A-Za-z0-9_]"
            }
        }
        {
            order[++count] = $0
            text[$0] = ""
            read_source($0)
        }
        END {
            for (i = 1; i <= count; i++) {
                if (order[i] !~ /\.(cpp|h)$/) continue
                for (header in pattern) {
                    if (!match(text[order[i]], pattern[header])) continue
                    what = substr(text[order[i]], RSTART, RLENGTH - 1)
                    split("", seen)
                    if (!includes(order[i], header))
                        printf "%s: %s is of <%s>, which neither it includes nor a header of ours that it includes\n", order[i], what, header
                }
            }
            if (!count) print "no source was found"
        }'
}

# Each header has names here.
bash test/precompiled.sh --headers | sed 's/^#include <\(.*\)>$/\1/' | sort >"$work/precompiled"
cut -d' ' -f1 "$work/names" | sort | comm -13 - "$work/precompiled" |
    sed 's/$/: precompiled, but this test does not know what is named of it/' >"$work/said"

# A source that lacks two, one of which a header of its own has.
mkdir "$work/test"
printf '#include "lacking.h"\nstd::vector<std::string> of_two; // std::map is in a comment\n' >"$work/test/lacking.cpp"
printf '#include <string>\n' >"$work/test/lacking.h"
printf 'test/%s\n' lacking.cpp lacking.h | missing "$work/" >"$work/lacking"
grep -q '^test/lacking.cpp: std::vector is of <vector>' "$work/lacking" && [ "$(wc -l <"$work/lacking")" = 1 ] || {
    echo 'a source that lacks <vector> and nothing else was to be named:'
    cat "$work/lacking"
    exit 1
}

sources prov util include test -- '*.cpp' '*.h' '*.def' '*.inc' | missing '' >>"$work/said"
cat "$work/said"
[ ! -s "$work/said" ]
