"""The fork server: a warm interpreter that forks the processes of each job and says how they ended."""
