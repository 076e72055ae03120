"""What runs in the caller: jobs, workers and verdicts. It believes nothing that a child says but the tester's report."""
