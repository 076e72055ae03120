"""The contract `separate`: program and tests run in two processes, which exchange plain data and handles."""
