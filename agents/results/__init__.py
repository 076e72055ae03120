"""What evaluations leave behind, and what is done with it: read, graded, judged anew, compared, plotted, and looked at.

Nothing here samples, and nothing imports torch. `reading` gives a recorded run as rows; every other file takes such runs.
"""
