"""What training and evaluation leave behind, and what is done with it: read, graded, judged anew, compared, plotted, looked at.

Nothing here samples, and nothing imports torch. `run` is the folder of a training run, `evaluation_record` writes an evaluation
as it goes, `reading` gives a recorded one as rows, and the other files take such runs.
"""
