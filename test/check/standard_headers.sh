#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What a source names of the C++ library's headers that the builds of test/run.sh have in each source
# (test/precompiled.sh), it includes, or a header of ours that it includes does: those builds would
# compile without.
set -u
. "$(dirname "${BASH_SOURCE[0]}")/sources.sh"

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# A header, and what is named of it: in std, or anywhere where = is before it. Below them are headers
# that come along with those.
cat >"$work/names" <<'NAMES'
algorithm min max clamp minmax sort stable_sort find find_if find_if_not any_of all_of none_of copy copy_n copy_if fill fill_n generate equal count count_if remove_if replace replace_if lower_bound upper_bound binary_search equal_range reverse partition transform rotate max_element min_element for_each unique mismatch search is_sorted adjacent_find nth_element push_heap pop_heap make_heap ranges
array array to_array
atomic atomic atomic_ref atomic_flag atomic_thread_fence atomic_signal_fence memory_order memory_order_relaxed memory_order_acquire memory_order_release memory_order_acq_rel memory_order_seq_cst
cerrno =errno =EACCES =E(ADDRINUSE|ADDRNOTAVAIL|AGAIN|ALREADY|BADF|BUSY|CANCELED|CONNABORTED|CONNREFUSED|CONNRESET|DEADLK|DOM|EXIST|FAULT|HOSTUNREACH|INPROGRESS|INTR|INVAL|IO|ISCONN|MFILE|MSGSIZE|NAMETOOLONG|NFILE|NOBUFS|NODATA|NODEV|NOENT|NOMEM|NOMSG|NOSPC|NOSYS|NOTCONN|NOTSUP|NXIO|OPNOTSUPP|OVERFLOW|PERM|PIPE|PROTO|PROTONOSUPPORT|RANGE|SHUTDOWN|SRCH|TIME|TIMEDOUT|WOULDBLOCK)
chrono chrono chrono_literals
csignal signal raise =sigaction =sigset_t =SIG(ABRT|ALRM|BUS|CHLD|CONT|FPE|HUP|ILL|INT|KILL|PIPE|QUIT|SEGV|STOP|TERM|TRAP|USR1|USR2|_IGN|_DFL)
cstddef size_t ptrdiff_t byte nullptr_t max_align_t to_integer =offsetof
cstdint int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t intmax_t uintmax_t =SIZE_MAX =UINT(8|16|32|64)_MAX =INT(8|16|32|64)_MAX
cstdio printf fprintf vprintf vfprintf snprintf vsnprintf puts fputs putc fputc putchar fgetc fopen freopen fclose fread fwrite fgets fflush ferror feof fseek rewind setvbuf tmpfile perror rename sscanf fscanf FILE =stderr =stdout
cstdlib getenv exit _Exit quick_exit abort atexit malloc calloc realloc free aligned_alloc abs labs atoi atol strtol strtoul strtoll strtoull strtod system qsort =EXIT_SUCCESS =EXIT_FAILURE
cstring memcpy memset memcmp memmove memchr strlen strcmp strncmp strerror strchr strrchr strstr strcpy strncpy strcspn strspn strpbrk
deque deque
fstream fstream ifstream ofstream
functional function hash less greater bind ref cref invoke reference_wrapper plus equal_to not_fn
map map multimap
memory unique_ptr shared_ptr weak_ptr make_unique make_unique_for_overwrite make_shared addressof enable_shared_from_this construct_at destroy_at align assume_aligned to_address allocator
mutex mutex recursive_mutex lock_guard unique_lock scoped_lock once_flag call_once defer_lock adopt_lock try_to_lock
new nothrow nothrow_t bad_alloc align_val_t launder
optional optional nullopt make_optional
span span as_bytes as_writable_bytes dynamic_extent
string string to_string stoi stol stoul stoull stod getline
string_view string_view
thread thread jthread this_thread
utility move forward exchange pair make_pair swap declval as_const index_sequence make_index_sequence cmp_less cmp_equal
vector vector
bit endian bit_cast bit_ceil bit_floor bit_width countr_zero countl_zero popcount has_single_bit rotl rotr
cctype toupper tolower isdigit isspace isalpha isalnum isxdigit isprint
climits =(CHAR_BIT|INT_MAX|INT_MIN|UINT_MAX|LONG_MAX|ULONG_MAX)
cmath floor ceil fabs pow sqrt log10 log2 isfinite isnan lround
ctime time time_t strftime localtime gmtime
limits numeric_limits
numeric accumulate iota gcd
sstream istringstream ostringstream stringstream
system_error error_code system_error generic_category
tuple tuple tie apply make_tuple
unordered_map unordered_map unordered_multimap
unordered_set unordered_set
NAMES

# Prints a line for each header that is missing in one of the sources whose paths it reads; of what is
# neither .cpp nor .h, only what it includes counts. They are in the folder `from`, which ends in a /.
missing() { # from
    awk -v from="$1" -v names="$work/names" '
        # Without what is in quotes, and comments. A text of several lines is read as code.
        function code(line) {
            if (inside && !sub(/^.*\*\//, "", line)) return ""
            inside = 0
            gsub(/\\./, "", line)
            gsub(/\047"\047/, "", line)
            gsub(/"[^"]*"/, "\"\"", line)
            gsub(/\/\*([^*]|\*[^\/])*\*\//, "", line)
            sub(/\/\/.*/, "", line)
            inside = sub(/\/\*.*/, "", line)
            return line
        }
        function read_source(path,    line, name) {
            inside = 0
            while ((getline line <(from path)) > 0) {
                if (match(line, /^[ \t]*#[ \t]*include[ \t]*[<"][^>"]*/)) {
                    name = substr(line, RSTART, RLENGTH)
                    sub(/^[^<"]*/, "", name)
                    if (name ~ /^<rdma\//) gives[path, "errno.h"] = 1 # as fi_errno.h says
                    if (name ~ /^</) gives[path, substr(name, 2)] = 1
                    else own[path] = own[path] " " substr(name, 2)
                } else text[path] = text[path] " " code(line) "\n"
            }
            close(from path)
        }
        # Beside the source that includes it, from the root, or in a folder of the -I options.
        function place_of(path, name,    i, found) {
            place[1] = path
            sub(/[^\/]*$/, "", place[1])
            for (i = 1; i <= places; i++) {
                found = place[i] name
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
            places = split("::prov/dat/:prov/:include/:util/:test/", place, ":")
            while ((getline line <names) > 0) {
                n = split(line, word, " ")
                header = word[1]
                c_name[header] = header ~ /^c/ ? substr(header, 2) ".h" : header
                in_std = anywhere = ""
                for (i = 2; i <= n; i++)
                    if (word[i] ~ /^=/) anywhere = anywhere "|" substr(word[i], 2)
                    else in_std = in_std "|" word[i]
                pattern[header] = (in_std ? "std::(" substr(in_std, 2) ")[^A-Za-z0-9_]" : "") \
                    (in_std && anywhere ? "|" : "") \
                    (anywhere ? "[^A-Za-z0-9_.>](" substr(anywhere, 2) ")[^A-Za-z0-9_]" : "")
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
                    sub(/^[^A-Za-z_]/, "", what)
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
[ -s "$work/precompiled" ] || { echo 'precompiled.sh names no header'; exit 1; }
cut -d' ' -f1 "$work/names" | sort | comm -13 - "$work/precompiled" |
    sed 's/$/: precompiled, but this test does not know what is named of it/' >"$work/said"

# A source, and all that it lacks.
mkdir "$work/test"
cat >"$work/test/lacking.cpp" <<'LACKING'
#include "lacking.h"
#include <string.h>
std::vector<std::string> lines; // std::map is in a comment, and so is this: /*
const char* text = "std::optional"; /* http://std::deque */ int saved_errno = errno;
/* std::span
   and */ std::size_t length = std::strlen(text); char quote = '"'; std::tuple<int> one; char other = '"';
LACKING
echo '#include <string>' >"$work/test/lacking.h"
printf 'test/%s\n' lacking.cpp lacking.h | missing "$work/" | sed 's/.* is of <\(.*\)>,.*/\1/' | sort >"$work/lacking"
[ "$(paste -sd" " "$work/lacking")" = 'cerrno cstddef tuple vector' ] || {
    echo 'of a source that lacks cerrno, cstddef, tuple and vector it was said that it lacks:'
    cat "$work/lacking"
    exit 1
}

sources prov util include test -- '*.cpp' '*.h' '*.def' '*.inc' | missing '' >>"$work/said" ||
    echo 'the sources were not read to their end' >>"$work/said"
cat "$work/said"
[ ! -s "$work/said" ]
