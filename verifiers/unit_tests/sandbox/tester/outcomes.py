"""How tests end other than by passing or failing."""

from __future__ import annotations


class UnsupportedTestError(Exception):
    """A test uses what is not supported here."""


class Skipped(Exception):
    """A test called `skip` or `xfail`."""
