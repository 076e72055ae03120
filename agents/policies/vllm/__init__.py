"""Completions sampled by vLLM, in a process of its own or on a server, with the weights of the policy that learns."""
