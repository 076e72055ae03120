"""One file for each paper, with the paper's advantages and loss. All other parts of an agent are in `agents.learn.agent`."""
