#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Makes trace files for tests, by the layout that prov/dat/base/trace.h documents.
#   alter.py clock FILE OUT NANOSECONDS  as if it had another clock, that is so much ahead
#   alter.py many FILE OUT COUNT         of the first endpoint of FILE with its states, and COUNT
#                                        sends; other operations are gone
#   alter.py words FILE OUT              with verdicts, events and what is flushed that have no name
#   alter.py escapes FILE OUT            of a program whose name would colour a terminal
#   alter.py vast FILE OUT               as if rings of 2^31 records had gone round for ever: a file
#                                        of 256 GiB, of which nothing else is on the disk
import struct
import sys

HEADER, RECORD = 4096, 64
KIND_TRANSITION, KIND_CLOCK, KIND_POSTED, KIND_COMPLETED = 2, 4, 5, 6


def capacities(data):
    return struct.unpack_from('<QQ', data, 40)


def clock(source, out, ahead):
    with open(source, 'rb') as file:
        data = bytearray(file.read())
    struct.pack_into('<Q', data, 24, struct.unpack_from('<Q', data, 24)[0] + ahead)
    data[72:136] = b'another clock'.ljust(64, b'\0')
    for at in range(HEADER, HEADER + sum(capacities(data)) * RECORD, RECORD):
        stamp, when, _, kind = struct.unpack_from('<QQIB', data, at)
        if stamp:
            struct.pack_into('<Q', data, at + 8, when + ahead)
        if stamp and kind == KIND_CLOCK:
            first, second = struct.unpack_from('<QQ', data, at + 24)
            struct.pack_into('<QQ', data, at + 24, first + ahead, second + ahead)
    with open(out, 'wb') as file:
        file.write(data)


def many(source, out, count):
    with open(source, 'rb') as file:
        data = bytearray(file.read())
    old = capacities(data)
    kept = data[:HEADER + old[0] * RECORD]
    begin = end = struct.unpack_from('<Q', data, HEADER + 8)[0]
    endpoint = struct.unpack_from('<I', data, HEADER + 16)[0]
    for at in range(HEADER, len(kept), RECORD):
        if struct.unpack_from('<Q', data, at)[0]:
            end = max(end, struct.unpack_from('<Q', data, at + 8)[0])
    step = max((end - begin) // (count + 2), 200)
    struct.pack_into('<Q', kept, 48, 2 * count)
    struct.pack_into('<Q', kept, 320, 2 * count)
    records = bytearray(2 * count * RECORD)
    body = struct.Struct('<QQIB3xQQQQIBBBx')
    for i in range(count):
        when = begin + i * step
        failed = 1 if i % 1000 == 999 else 0
        body.pack_into(records, 2 * i * RECORD, 2 * i + 1, when, endpoint, KIND_POSTED, i, 64,
                       4096 + i, i, 1, 0, 0, 0)
        body.pack_into(records, (2 * i + 1) * RECORD, 2 * i + 2, when + step // 2, endpoint,
                       KIND_COMPLETED, i, 64, 4096 + i, 2**64 - 1, 1, 0, failed * 8, 0)
    with open(out, 'wb') as file:
        file.write(kept)
        file.write(records)


def words(source, out):
    with open(source, 'rb') as file:
        data = bytearray(file.read())
    for at in range(HEADER, HEADER + sum(capacities(data)) * RECORD, RECORD):
        stamp, _, _, kind = struct.unpack_from('<QQIB', data, at)
        if stamp and kind == KIND_TRANSITION:
            data[at + 24 + 15:at + 24 + 19] = bytes([255, 255, 255, 255])
    with open(out, 'wb') as file:
        file.write(data)


def escapes(source, out):
    with open(source, 'rb') as file:
        data = bytearray(file.read())
    data[136:142] = b'\x1b[31m\0'
    data[200:206] = b'\x1b[31m\0'
    with open(out, 'wb') as file:
        file.write(data)


def vast(source, out):
    with open(source, 'rb') as file:
        data = bytearray(file.read(HEADER))
    struct.pack_into('<QQ', data, 40, 1 << 31, 1 << 31)
    for at in 256, 320:
        struct.pack_into('<Q', data, at, 2**64 - 1)
    with open(out, 'wb') as file:
        file.write(data)
        file.truncate(HEADER + 2 * (1 << 31) * RECORD)


if sys.argv[1] == 'clock':
    clock(sys.argv[2], sys.argv[3], int(sys.argv[4]))
elif sys.argv[1] in ('words', 'escapes', 'vast'):
    {'words': words, 'escapes': escapes, 'vast': vast}[sys.argv[1]](sys.argv[2], sys.argv[3])
else:
    many(sys.argv[2], sys.argv[3], int(sys.argv[4]))
