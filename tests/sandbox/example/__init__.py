"""Code of a contract: one process asks another for squares."""

raise AssertionError("the fork server does not run this")
