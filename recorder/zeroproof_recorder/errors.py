"""What a user can do wrong."""


class RecorderError(Exception):
    """A mistake in how the recorder was used; the message says what to do instead."""
