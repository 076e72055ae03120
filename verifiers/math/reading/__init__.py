"""From the text of an answer to its tree: `read` is the entry. Nothing here knows a gold or compares.

Text is cleaned (`normalize`), cut into tokens (`tokens`), and parsed: `parse` divides sentences and numbered parts, `grammar`
reads the mathematics with a `cursor`. `phrases` knows answers in words, `vector_marks` arrows and bold letters, and
`plus_minus` writes out a sign of two values.
"""
