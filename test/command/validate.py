# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Holds JSON documents against their JSON schemas: SCHEMA DOCUMENT, pairwise. Exit status 1 where one
# does not fit; 77 where there is no jsonschema (Debian: python3-jsonschema). With --refuse in front of
# a pair that document must not fit.
import json
import sys

try:
    import jsonschema
except ImportError:
    print("there is no jsonschema for", sys.executable)
    sys.exit(77)

bad = 0
words = sys.argv[1:]
while words:
    refuse = words[0] == "--refuse"
    words = words[1:] if refuse else words
    schema, document = (json.load(open(path, encoding="utf-8")) for path in words[:2])
    jsonschema.Draft7Validator.check_schema(schema)
    errors = list(jsonschema.Draft7Validator(schema).iter_errors(document))
    if bool(errors) != refuse:
        bad = 1
        print(words[1], "fits" if refuse else "does not fit", words[0])
        for error in errors[:3]:
            print(" ", "/".join(map(str, error.path)) + ":", error.message[:300])
    words = words[2:]
sys.exit(bad)
