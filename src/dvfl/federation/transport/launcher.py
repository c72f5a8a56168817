"""Becomes the command in its arguments, after asking the kernel to end it with the process that started it.

Run as a script: `launcher.py PARENT COMMAND ARGUMENT ..`, where PARENT is the number of the starting process. A new
process asks for itself, since between fork and exec other threads' locks may be held for good.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # from linux/prctl.h

if __name__ == "__main__":
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != int(sys.argv[1]):
        sys.exit("the process that started this one is gone")
    os.execv(sys.argv[2], sys.argv[2:])
