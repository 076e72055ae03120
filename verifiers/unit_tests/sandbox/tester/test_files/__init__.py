"""A layer on top of the tester: test files in pytest's or unittest's style, and other test code that may do anything.

Each of its jobs has a process of its own. The fork server loads it when a job first needs it, and the tester knows nothing of
it: what the layer needs to know or to do there goes through the methods of `tester.Tester` that it overrides, and through
`session.Hooks`.
"""
