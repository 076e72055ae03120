"""The fork server: a warm interpreter that forks the processes of each job and reports how they ended."""
