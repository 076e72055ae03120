"""The code that runs inside the sandbox: the fork server, the jail, the candidate, the tester, and their protocol.

The package uses the standard library alone and no other part of this distribution: the fork server starts it as a
top-level package, under an interpreter without site-packages, so that a fork is small.
"""
