"""The fork server: a warm interpreter that forks a candidate and a tester for each job, and reports how they ended."""
