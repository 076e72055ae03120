"""The exception for text that is not mathematics."""


class UnreadableError(ValueError):
    """Text that cannot be read as mathematics."""
