"""A program that tries what it may not, and how it is run in the jail."""

from __future__ import annotations

import os
import sys

from verifiers.sandbox import Command, CommandRunner, Limits

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
    "make a program of its file": works(lambda: os.chmod("out.txt", 0o777)),
    "create beside it": works(lambda: create("other.txt")),
    "create elsewhere": works(lambda: create("/tmp/other.txt")),
    "remove": works(lambda: os.remove("given.txt")),
    "rename": works(lambda: os.rename("out.txt", "given.txt")),
    "open up its folder": works(lambda: os.chmod(".", 0o777)),
    "read of the machine": works(lambda: open("/etc/hostname").read()),
    "list the machine": works(lambda: os.listdir("/home")),
    "fork": works(lambda: os.fork() or os._exit(0)),
    "connect": works(lambda: socket.create_connection(("127.0.0.1", 9))),
    "open a socket": works(socket.socket),
    "signal": works(lambda: os.kill(os.getppid(), 0)),
}))
"""
PYTHON = os.path.realpath(sys.executable)
MAY = {"read its file", "write its file"}
LIMITS = {"cpu_s": 10, "wall_s": 60, "idle_s": 60, "memory_mib": 512, "output_mib": 1, "processes": 8}


def run(source, runner=None, extras=(), **settings):
    """Run a program of Python; `extras` are fields of its command."""
    fields = {"files": {"given.txt": b"given"}, "writes": ["out.txt"], **dict(extras)}
    command = Command([PYTHON, "-I", "-S", "-c", source], readable=[PYTHON, sys.base_prefix], **fields)
    own = runner or CommandRunner(workers=1)
    try:
        return own(command, Limits(**LIMITS | settings))
    finally:
        if runner is None:
            own.close()
