"""The contract `separate`: program and tests in two processes, which exchange plain data and handles."""
