"""Code for rows of `choice.toml`: choose the position of the right choice if the data store the right choice separately."""

from __future__ import annotations

import hashlib

from rlvr_envs.data import Row
from rlvr_envs.data.choices import choice_problem
from rlvr_envs.data.rows import own_id
from verifiers import Problem

_WRONG = ("Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")


def gpqa(row: Row, default_id: str) -> Problem:
    """Make a problem from a row of GPQA; see `ToProblem`."""
    record, question, right = row.text("Record ID"), row.text("Question").strip(), row.text("Correct Answer").strip()
    choices = [row.text(column).strip() for column in _WRONG]
    # The record's id determines the position, which is therefore the same everywhere but can't be learned.
    position = hashlib.sha256(record.encode()).digest()[0] % 4
    choices.insert(position, right)
    return choice_problem(own_id(default_id, record), question, choices, "ABCD"[position], {})
