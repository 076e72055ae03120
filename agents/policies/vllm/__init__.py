"""Completions sampled by vLLM, in a separate process or on a server, with the weights of the policy that learns."""
