"""The state that the CORE connections of one node share."""

from __future__ import annotations

from atalanta.message.encoding.buffer import Reader


class SharedState:
    """A reader for packets that are read in place, without state between packets, and the metadata of all sessions.

    `metadata`: (key, value) -> the sessions that carry it, as (connection, channel), for unique metadata.
    """

    def __init__(self) -> None:
        self.reader: Reader = Reader(b"")
        self.metadata: dict[tuple[str, str], dict[tuple[int, int], bool]] = {}

    def add_metadata(self, owner: tuple[int, int], key: str, value: str) -> None:
        """Records the metadata of a session."""
        self.metadata.setdefault((key, value), {})[owner] = True

    def remove_metadata(self, owner: tuple[int, int], key: str, value: str) -> None:
        """Removes the metadata of a session."""
        owners = self.metadata.get((key, value))
        if owners is not None:
            owners.pop(owner, None)
            if not owners:
                del self.metadata[(key, value)]
