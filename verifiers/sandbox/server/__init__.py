"""The fork server: a warm interpreter that forks the processes of each job, and tells how they ended."""
