"""The files that training and evaluation write, and the tools that read, grade, rejudge, compare, plot and show them.

Nothing here samples, and nothing imports torch. `run` is the folder of a training run, `evaluation_record` writes an evaluation
as it goes, `reading` gives a recorded one as rows, and the other files take such runs.
"""
