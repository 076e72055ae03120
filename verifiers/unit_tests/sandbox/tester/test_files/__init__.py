"""A layer above the tester: test files in pytest's or unittest's style, and other test code with arbitrary effects.

Each of its jobs runs in a process of its own. The tester does not depend on it: the layer overrides methods of
`tester.Tester` and sets attributes of its session.
"""
