"""The security boundary: what each process gives up before it runs any untrusted code."""
