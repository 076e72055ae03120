"""The rules of the instructions, grouped by subject; each file enters its rules into `verifiers.ifeval.catalogue`."""
