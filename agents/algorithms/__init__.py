"""One file for each paper, with its advantages and its loss; everything else that an agent does is in `agents.learn.agent`."""
