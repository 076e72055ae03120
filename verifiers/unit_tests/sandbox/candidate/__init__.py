"""The process of the program under test. It knows none of the tests, and everything that it says is checked."""
