"""The files that training and evaluation write, and the tools that read, grade, rejudge, compare, plot and show them.

No module here samples or imports torch. `run` is the folder of a training run, `evaluation_record` writes an evaluation as it
runs, `reading` returns a recorded evaluation as rows, and the other files process such recorded runs.
"""
