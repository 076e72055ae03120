"""What the processes of the example do."""

from __future__ import annotations

import os
import socket
from typing import Any

from verifiers.sandbox.contract import CONTROL, DECLINED, READY
from verifiers.sandbox.memory_files import read_all

seen: list[str] = []


def prepare(packages: dict[str, Any]) -> None:
    """Note that it was called, and when."""
    seen.append(f"prepared with {len(packages['names'])} packages")


def answer() -> None:
    """Answer numbers with their squares; from and to the asker by 0 and 1."""
    for number in iter(lambda: os.read(0, 1), b""):
        os.write(1, bytes([number[0] ** 2]))
    os._exit(3)


def ask_once() -> None:
    """Ask for the squares of a file's numbers."""
    _ask(0, 1, 2, 3)
    os._exit(0)


def ask_for_ever() -> None:
    """Ask for those of job after job; the number 0 is only for a process that has served none, and ends it."""
    control, served = socket.socket(fileno=CONTROL), 0
    while True:
        _, (answers, questions, numbers, squares), _, _ = socket.recv_fds(control, 1, 4)
        if 0 in read_all(numbers) and served:
            control.send(DECLINED)
            os._exit(4)
        _ask(answers, questions, numbers, squares)
        if 0 in read_all(numbers):
            os._exit(5)
        for descriptor in (answers, questions, numbers, squares):
            os.close(descriptor)
        served += 1
        control.send(READY)


def _ask(answers: int, questions: int, numbers: int, squares: int) -> None:
    for number in read_all(numbers):
        os.write(questions, bytes([number]))
        os.write(squares, os.read(answers, 1))
    os.write(squares, f" by {os.getpid()}, {', '.join(seen)}".encode())
