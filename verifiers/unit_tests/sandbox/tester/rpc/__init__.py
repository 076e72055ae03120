"""The conversation with the candidate: proxies of its objects, exceptions, callbacks."""
