"""The fork server: a warm interpreter that forks the processes of each job, and answers with how they ended."""
