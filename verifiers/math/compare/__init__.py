"""Comparison of an answer with the gold: `comparer` selects the comparison, and every other file compares one kind.

A comparison is a function of the comparer, the gold and the answer. It examines the shapes of both trees (`shapes`, `names`,
`plain`, `measures`), calls the comparer for their parts, and leaves the values of expressions to `verifiers.math.values`.
"""
