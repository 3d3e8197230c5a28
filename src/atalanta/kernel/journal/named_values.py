"""Durable values by name (VALUE records): small state of clusters, bridges, diverts and pauses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.journal import records

if TYPE_CHECKING:
    from atalanta.kernel.command import CurrentCommand
    from atalanta.kernel.ports import JournalPort


class NamedValues:
    """The newest value of each key, and the lsn of the record that holds it.

    A key begins with a prefix of its owner ("divert.", "pause.queue.", …).
    """

    def __init__(self, journal: JournalPort, command: CurrentCommand) -> None:
        self.journal = journal
        self.command = command
        self._stored: dict[str, tuple[bytes, int]] = {}

    def get(self, key: str) -> bytes | None:
        """Returns the value, None without one."""
        found = self._stored.get(key)
        return None if found is None else found[0]

    def has(self, key: str) -> bool:
        return key in self._stored

    def keys(self, prefix: str = "") -> list[str]:
        """Returns the keys that begin with `prefix`, the prefix included, in the order of their first records."""
        return [key for key in self._stored if key.startswith(prefix)]

    def lsn_of(self, key: str) -> int:
        """Returns the lsn of the value's record, 0 without a value."""
        found = self._stored.get(key)
        return 0 if found is None else found[1]

    def count(self) -> int:
        return len(self._stored)

    def set(self, key: str, value: bytes, idle: bool = False) -> int:
        """Stores the value and returns the lsn of its record.

        `idle`: the record need not be committed soon (`JournalPort.append_idle`).
        """
        lsn = self._append(key, value, idle)
        self._stored[key] = (value, lsn)
        return lsn

    def forget(self, key: str, idle: bool = False) -> int:
        """Removes the value and returns the lsn of the record that says so; 0 if there is no value."""
        if key not in self._stored:
            return 0
        lsn = self._append(key, None, idle)
        del self._stored[key]
        return lsn

    def _append(self, key: str, value: bytes | None, idle: bool) -> int:
        record = records.encode_value(key, value)
        self.command.begin_change()
        if idle:
            return self.journal.append_idle(records.VALUE, record)
        return self.journal.append(records.VALUE, record)

    # -- recovery and compaction ------------------------------------------------------------------
    def restore(self, key: str, value: bytes | None, lsn: int) -> None:
        """Applies a VALUE record of the journal; None: the value was removed."""
        if value is None:
            self._stored.pop(key, None)
        else:
            self._stored[key] = (value, lsn)

    def relocate(self, key: str, lsn: int) -> None:
        """Appends the value again if the record at `lsn` is its newest."""
        found = self._stored.get(key)
        if found is not None and found[1] == lsn:
            self.set(key, found[0])
