"""The security boundary: what each process gives up before it runs a line of anybody else's code."""
