"""One file a paper: which advantages, which loss. What an agent does otherwise is in `agents.learn.agent`."""
