"""The receiver of large bodies of a client, piece by piece, so that they are not kept in memory."""

from __future__ import annotations

from mypy_extensions import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class BodySink:
    """The receiver of one message's body. `write` raises no error: its reader gets the error later."""

    def write(self, piece: bytes) -> None:
        """Takes the next piece, in order."""
        raise NotImplementedError
