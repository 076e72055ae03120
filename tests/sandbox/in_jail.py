"""A program that tries what it may not, and how it is run in the jail."""

from __future__ import annotations

import os
import sys

from verifiers.sandbox import Limits, run_binary

TRY = """
import json, os, socket, sys
def works(attempt):
    try: attempt()
    except OSError: return False
    return True
def create(path): os.close(os.open(path, os.O_WRONLY | os.O_CREAT))
print(json.dumps({
    "read its file": works(lambda: open("given.txt").read()),
    "write its file": works(lambda: open("out.txt", "w").write("written")),
    "write what it is given": works(lambda: open("given.txt", "w")),
    "create beside it": works(lambda: create("other.txt")),
    "create elsewhere": works(lambda: create("/tmp/other.txt")),
    "remove": works(lambda: os.remove("out.txt")),
    "rename": works(lambda: os.rename("out.txt", "given.txt")),
    "open up its folder": works(lambda: os.chmod(".", 0o777)),
    "read of the machine": works(lambda: open("/etc/hostname").read()),
    "list the machine": works(lambda: os.listdir("/home")),
    "fork": works(os.fork),
    "connect": works(lambda: socket.create_connection(("127.0.0.1", 9))),
    "open a socket": works(socket.socket),
    "signal": works(lambda: os.kill(os.getppid(), 0)),
}))
"""
PYTHON = os.path.realpath(sys.executable)
MAY = {"read its file", "write its file"}


def run(source, isolation="auto", **settings):
    limits = Limits(
        **{"cpu_s": 10, "wall_s": 60, "idle_s": 60, "memory_mib": 512, "output_mib": 1, "processes": 8, **settings}
    )
    return run_binary(
        [PYTHON, "-I", "-S", "-c", source],
        {"given.txt": b"given"},
        ["out.txt"],
        readable=[PYTHON, sys.base_prefix],
        limits=limits,
        isolation=isolation,
    )
