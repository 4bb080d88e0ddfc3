# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Holds JSON documents against their JSON schemas: SCHEMA DOCUMENT, pairwise. Exit status 1 where one
# does not fit; 77 where there is no jsonschema (Debian: python3-jsonschema). With --refuse in front of
# a pair that document must not fit. Other tests import errors_of().
import json
import sys

try:
    import jsonschema
except ImportError:
    print("there is no jsonschema for", sys.executable)
    sys.exit(77)


def errors_of(schema_file, document):
    """Lines that say where the document does not fit."""
    with open(schema_file, encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft7Validator.check_schema(schema)
    return ["/".join(map(str, error.path)) + ": " + error.message[:300]
            for error in jsonschema.Draft7Validator(schema).iter_errors(document)]


def main(words):
    bad = 0
    while words:
        refuse = words[0] == "--refuse"
        words = words[1:] if refuse else words
        schema_file, document_file = words[:2]
        with open(document_file, encoding="utf-8") as file:
            errors = errors_of(schema_file, json.load(file))
        if bool(errors) != refuse:
            bad = 1
            print(document_file, "fits" if refuse else "does not fit", schema_file)
            for error in errors[:3]:
                print(" ", error)
        words = words[2:]
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
