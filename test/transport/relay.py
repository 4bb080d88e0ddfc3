# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Carries one TCP connection from 127.0.0.1 of one network namespace to 127.0.0.1 of another, at the
# same port, so that each end finds the other on its own host. Writes "listening" when it does.
#
# Usage: relay.py FROM TO PORT: files of namespaces
import ctypes
import os
import select
import socket
import sys

CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


def enter(namespace):
    with open(namespace) as file:
        if libc.setns(file.fileno(), CLONE_NEWNET) != 0:
            sys.exit("setns: " + os.strerror(ctypes.get_errno()))


port = int(sys.argv[3])
enter(sys.argv[1])
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", port))
listener.listen()
print("listening", flush=True)
near, _ = listener.accept()
enter(sys.argv[2])
far = socket.create_connection(("127.0.0.1", port))
other = {near: far, far: near}
while True:
    for ready in select.select([near, far], [], [])[0]:
        data = ready.recv(65536)
        if not data:
            sys.exit()
        other[ready].sendall(data)
