"""The code of a contract that runs in the jail: the candidate, the tester, and their protocol.

The package uses the standard library and modules of `verifiers.sandbox` alone: the fork server loads it without site-packages,
so that a fork is small.
"""
