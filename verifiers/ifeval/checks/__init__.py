"""The rules of the instructions, by their subject; each file enters its own into `verifiers.ifeval.catalogue`."""
