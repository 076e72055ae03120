"""The process of the tests, which the program reaches through checked messages alone; its report decides the verdict."""
