# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# A process that has a socket as a domain has, and gives who looks something else: hostile.py KIND,
# until its standard input ends. It prints a line when it listens.
#
#   file      a descriptor of a file     unsealed  memory that can be cut off
#   short     memory that is too short   other     a page of another layout
#   many      two descriptors            nothing   the end at once
#   silent    nothing
#   random    a page with any bytes behind its head
import fcntl
import os
import random
import select
import socket
import struct
import sys
import tempfile

MAGIC = 0x6461747061676501
# sizeof(Page) of prov/dat/engine/statistics_page.h
ENDS, ROWS = 128 * 512, 1024 * 424
SIZE = 192 + ENDS + 2 * (352 + ROWS)
F_ADD_SEALS = 1033
SEALS = 2 | 4  # F_SEAL_SHRINK, F_SEAL_GROW

kind = sys.argv[1]


def memory(size, magic, seals):
    fd = os.memfd_create("dat-stats", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.truncate(fd, size)
    os.pwrite(fd, struct.pack("<Q", magic), 0)
    if seals:
        fcntl.fcntl(fd, F_ADD_SEALS, seals)
    return fd


def given():
    if kind == "file":
        with tempfile.TemporaryFile() as file:
            file.truncate(SIZE)
            file.write(struct.pack("<Q", MAGIC))
            file.flush()
            return [os.dup(file.fileno())]
    if kind == "many":
        return [memory(SIZE, MAGIC, SEALS), memory(SIZE, MAGIC, SEALS)]
    fd = memory(SIZE - 4096 if kind == "short" else SIZE, MAGIC + (kind == "other"),
                0 if kind == "unsealed" else SEALS)
    if kind == "random":
        seed = random.randrange(1 << 32)
        print("seed", seed, file=sys.stderr)
        dice = random.Random(seed)
        os.pwrite(fd, dice.randbytes(SIZE - 8), 8)
        # Text that would colour a terminal, and a number of sheets that is none.
        os.pwrite(fd, b"\x1b[31m\x07\xc3(name", 32)
    return [fd]


listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind("\0dat-stats-%016x" % random.randrange(1 << 64))
listener.listen(8)
print("listening", os.getpid(), flush=True)
kept = []
while True:
    ready, _, _ = select.select([listener, sys.stdin], [], [])
    if sys.stdin in ready:
        break
    one, _ = listener.accept()
    if kind == "nothing":
        one.close()
        continue
    kept.append(one)
    if kind != "silent":
        fds = given()
        socket.send_fds(one, [struct.pack("<Q", MAGIC)], fds)
        for fd in fds:
            os.close(fd)
