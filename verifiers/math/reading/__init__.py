"""Turns the text of an answer into its tree; the entry point is `read`. This package never uses the gold.

Text is cleaned (`normalize`), cut into tokens (`tokens`), and parsed: `parse` divides sentences and numbered parts, and
`grammar` reads the mathematics with a `cursor`. `phrases` reads answers in words, `vector_marks` reads arrows and bold letters,
and `plus_minus` writes out the two values of a plus-minus sign.
"""
