"""The contract `together`: pytest itself runs a test file and the program in one process of the jail."""
