"""The process of the program under test. It knows no test, and nothing that it says is believed without a check."""
