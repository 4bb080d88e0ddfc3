# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Looks at what dat_top prints, on standard input.
#
#   check.py json SCHEMA [EXPRESSION...]   a line of JSON fits the schema, and each expression of
#                                          Python is true, where `all` is the document and `of(PID)`
#                                          the domain of a process
#   check.py textfile                      a textfile keeps the conventions of Prometheus: names with
#                                          units, _total for counters alone, HELP and TYPE before the
#                                          samples of a family, no sample twice, values that are numbers
#
# Exit status 1 and a line where something is not so; 77 where there is no jsonschema (Debian:
# python3-jsonschema).
import json
import os
import re
import sys


def fail(*words):
    print(*words)
    sys.exit(1)


def look_at_json(schema_file, expressions):
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../command"))
    from validate import errors_of

    text = sys.stdin.read()
    document = json.loads(text)
    for error in errors_of(schema_file, document):
        fail(error)

    def of(process):
        return next((each for each in document["domains"] if each["process"] == process), None)

    for expression in expressions:
        if not eval(expression, {"all": document, "of": of}):
            fail("not true:", expression, "of", text)


UNITS = ("_seconds", "_bytes", "_info")
NOT_BASE = re.compile(r"_(ms|us|ns|minutes|hours|kb|mb|kib|mib|percent)(_|$)")
NAME = re.compile(r"^dat_[a-z][a-z0-9_]*$")
SAMPLE = re.compile(r'^(?P<name>[a-z0-9_]+)(?P<labels>\{.*\}) (?P<value>[-+.0-9eE]+)$')
LABELS = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\["\\n])*)"(,|$)')


def look_at_sample(line, family, seen):
    match = SAMPLE.match(line)
    if not match or match["name"] != family:
        fail("not a sample of", family + ":", line)
    inside = match["labels"][1:-1]
    if "".join(part.group(0) for part in LABELS.finditer(inside)) != inside:
        fail("labels:", line)
    names = [part.group(1) for part in LABELS.finditer(inside)]
    if len(set(names)) != len(names) or match["name"] + inside in seen:
        fail("twice:", line)
    seen.add(match["name"] + inside)
    float(match["value"])


def look_at_textfile():
    text = sys.stdin.read()
    if not text.endswith("\n"):
        fail("the last line has no end")
    family, kind, helped = None, None, None
    families, seen = [], set()
    for line in text.splitlines():
        words = line.split(" ", 3)
        if line.startswith("# HELP "):
            helped = words[2]
            if helped in families or not words[3].endswith("."):
                fail("help:", line)
        elif line.startswith("# TYPE "):
            family, kind = words[2], words[3]
            if helped != family or kind not in ("counter", "gauge") or not NAME.match(family):
                fail("type:", line)
            if (kind == "counter") != family.endswith("_total") or NOT_BASE.search(family):
                fail("name:", line)
            if "bytes" in family and not re.search(r"_bytes(_total)?$", family):
                fail("the unit comes last:", line)
            families.append(family)
        else:
            look_at_sample(line, family, seen)
    if not families:
        fail("nothing is in it")
    print(len(families), "families,", len(seen), "samples")


if sys.argv[1] == "json":
    look_at_json(sys.argv[2], sys.argv[3:])
else:
    look_at_textfile()
