"""Runs Python programs: their files, their exceptions, and the role of a single program."""
