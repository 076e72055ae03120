"""The code that runs in the caller: jobs, workers and verdicts. Of what child processes say, it trusts the report alone."""
