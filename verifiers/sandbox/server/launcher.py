"""Becomes a program of the machine, such as a proof checker, in the jail: a process of its own for each run.

It enters the layers, tries what must fail, tells of both, and becomes the program unless the isolation is less than was
asked for. The program may read the libraries and the paths it is given, write the files it is given, start threads and
nothing else: no process, socket, new file, or signal.
"""

from __future__ import annotations

import json
import math
import os
import resource
import sys

from ..isolation import probe
from ..isolation.jail import Jail, ResourceLimits, raise_stack_limit
from ..limits import LAYERS, Limits

_ANSWER = 3
"""The descriptor of the answer to `command`, above the standard streams. The program does not get it."""


def main() -> None:
    """Launch; the arguments are the descriptor of the answer, the parent's process id and the settings from `command`."""
    answer, parent, asked = int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
    isolation, limits = asked["isolation"], Limits(**asked["limits"])
    os.set_inheritable(answer, False)
    raise_stack_limit()
    jail = Jail(
        frozenset() if isolation == "none" else frozenset(LAYERS),
        asked["readable"],
        writable=asked["writable"],
        executes=True,
    )
    os.chdir(asked["folder"])
    jail.confine((0, 1, 2, answer), _with_cpu_signal(jail.settings(limits), limits.cpu_s), parent)
    os.set_inheritable(_ANSWER, False)
    hello = {"layers": jail.entered, "missing": jail.missing, "escapes": probe.escapes() if jail.wanted else []}
    problem = probe.isolation_problem(hello, isolation)
    os.write(_ANSWER, json.dumps({"layers": jail.entered, "problem": problem}).encode())
    if problem is None:
        try:
            os.execve(asked["command"][0], asked["command"], asked["environment"])
        except OSError as error:
            os.write(_ANSWER, f"can't execute {asked['command'][0]}: {error}".encode())


def _with_cpu_signal(settings: ResourceLimits, cpu_s: float) -> ResourceLimits:
    """The same limits, of which that on CPU time first sends SIGXCPU, by which the caller knows it from other ends."""
    soft = math.ceil(cpu_s)
    return tuple(
        (limit, (min(soft, values[1]), values[1]) if limit == resource.RLIMIT_CPU else values)
        for limit, values in settings
    )
