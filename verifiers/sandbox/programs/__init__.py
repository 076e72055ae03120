"""Runs Python programs: their files, their exceptions, and a role that runs a single program."""
