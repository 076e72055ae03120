"""Whether an answer is the gold: `comparer` decides by what the gold is, and each other file compares one kind of answer.

A comparison is a function of the comparer, the gold and the answer. It reads the shapes of both trees (`shapes`, `names`,
`plain`, `measures`), calls the comparer for their parts, and leaves what an expression is worth to `verifiers.math.values`.
"""
