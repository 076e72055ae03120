"""What can be said of test code before it runs, read off the tests alone, so that no program has a say in it."""
