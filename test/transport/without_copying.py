# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Runs a command that may not read other processes' memory, as in many containers: in it
# process_vm_readv(2) fails with EPERM, by a filter of seccomp.
#
# Usage: without_copying.py COMMAND...
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
NR_PROCESS_VM_READV, EPERM = {"x86_64": 310, "aarch64": 270}[os.uname().machine], 1
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, NR_PROCESS_VM_READV),  # the number of the call
         (0x06, 0, 0, 0x00050000 | EPERM), (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *s) for s in steps))
program = ctypes.create_string_buffer(struct.pack("HP", len(steps), ctypes.addressof(code)))
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
    sys.exit("seccomp: " + os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[1], sys.argv[1:])
