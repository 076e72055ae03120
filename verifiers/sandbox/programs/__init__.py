"""Running a program of Python: its files, its exceptions, and a role that runs one by itself."""
