"""Test files in pytest's or unittest's style: a layer on top, which the other kinds of tests do without."""
