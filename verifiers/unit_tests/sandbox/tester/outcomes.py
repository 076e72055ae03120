"""The exceptions by which the test API ends a test: unsupported, skipped or failed."""

from __future__ import annotations


class UnsupportedTestError(Exception):
    """A test uses what is not supported here."""


class Skipped(Exception):
    """A test called `skip` or `xfail`."""


class Failed(AssertionError):
    """A test called `fail`, or nothing was raised where something should have been."""
