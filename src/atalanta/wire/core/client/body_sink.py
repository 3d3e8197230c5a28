"""Where a client's large bodies go, piece by piece, instead of into memory."""

from __future__ import annotations

from mypy_extensions import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class BodySink:
    """Of one message. No error leaves `write`: what went wrong is told to whoever asks for the body."""

    def write(self, piece: bytes) -> None:
        """The next piece, in order."""
        raise NotImplementedError
