"""The last changes of a node's configuration, kept in its data folder over a restart."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from atalanta.config.changes.difference import Hunk
from atalanta.config.configuration import Configuration
from atalanta.files.regular import read_regular
from atalanta.files.replace import replace_file
from atalanta.runtime.process.logs import log_event

log = logging.getLogger("atalanta.app")

KEPT: Final = 20
# What one change may need to be taken back, and the whole file.
HUNKS_MAX: Final = 256 * 1024
FILE_BYTES_MAX: Final = 32 << 20


@dataclass
class KeptChange:
    """One change. `places` are the changed lines by the name of the file: no consoles see them."""

    id: str
    at: int
    user: str
    remote: str
    changes: list[dict[str, object]]
    difference: str
    written: bool
    undone: bool = False
    places: dict[str, list[dict[str, object]]] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """Returns the change for consoles."""
        return {
            "id": self.id,
            "at": self.at,
            "user": self.user,
            "from": self.remote,
            "changes": self.changes,
            "difference": self.difference,
            "written": self.written,
            "undone": self.undone,
        }

    def hunks(self) -> dict[str, list[Hunk]]:
        """Returns the changed lines by the name of the file."""
        return {name: [_hunk(each) for each in found] for name, found in self.places.items()}


def _hunk(found: dict[str, Any]) -> Hunk:
    return Hunk(found["before"], found["after"], found["lead"], found["tail"])


class ChangeHistory:
    """The changes in the file `path`, or in memory for a node without a data folder (None). The newest is the last."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.changes: list[KeptChange] = []
        self._read = False

    @classmethod
    def of(cls, configuration: Configuration) -> ChangeHistory:
        """Returns the changes of a configured node. Members of a pair have a data folder in common, not their files."""
        if not configuration.broker.persistence_enabled:
            return cls(None)
        named = hashlib.sha256(os.fsencode(os.path.realpath(configuration.path))).hexdigest()[:8]
        return cls(configuration.journal_folder / f"configuration-changes-{named}.json")

    def read(self) -> list[KeptChange]:
        """Returns the changes. A file that cannot be read is moved aside: a change does not fail by it."""
        if self._read or self.path is None:
            return self.changes
        self._read = True
        try:
            data = read_regular(self.path, FILE_BYTES_MAX)
            self.changes = [KeptChange(**each) for each in json.loads(data)]
        except FileNotFoundError:
            pass
        except (OSError, ValueError, TypeError, RecursionError) as error:
            aside = self.path.with_name(f"{self.path.name}.unreadable")
            with contextlib.suppress(OSError):
                os.replace(self.path, aside)
            log_event(log, "configuration_changes_unreadable", {"file": self.path, "moved_to": aside}, error)
        return self.changes

    def find(self, wanted: str) -> KeptChange | None:
        """Returns the change of that id; None if it is not kept any more."""
        return next((each for each in self.read() if each.id == wanted), None)

    def add(self, change: KeptChange) -> None:
        """Keeps a change, and forgets the oldest beyond KEPT. Raises OSError."""
        self.read()
        if sum(len(line) for found in change.places.values() for each in found for line in _lines(each)) > HUNKS_MAX:
            change.places = {}
        self._store([*self.changes, change][-KEPT:])

    def drop(self, change: KeptChange) -> None:
        """Forgets a change that was not applied. Raises OSError."""
        self._store([each for each in self.read() if each is not change])

    def mark(self, change: KeptChange, undone: bool) -> None:
        """Notes whether a change was taken back. Raises OSError."""
        change.undone = undone
        self._store(self.changes)

    def _store(self, changes: list[KeptChange]) -> None:
        if self.path is not None:
            # The lines of a file around a change may hold a password.
            replace_file(self.path, json.dumps([asdict(each) for each in changes]).encode(), 0o600)
        self.changes = changes


def _lines(place: dict[str, Any]) -> list[str]:
    return [line for lines in place.values() for line in lines]
