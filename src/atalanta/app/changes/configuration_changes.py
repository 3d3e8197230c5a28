"""The changes of the configuration of one run of a node, and what counts until its restart without being written."""

from __future__ import annotations

import logging
from collections import OrderedDict
from pathlib import Path
from typing import Final

from atalanta.app.changes.history import ChangeHistory
from atalanta.app.changes.written_file import why_not_written
from atalanta.app.storage import Storage
from atalanta.config.changes.request import ChangeRefused
from atalanta.config.changes.texts import CLASSIC, WILDFLY, Texts
from atalanta.config.configuration import Configuration
from atalanta.runtime.process.logs import log_event

log = logging.getLogger("atalanta.app")

SEEN_MAX: Final = 8
OPTION: Final = "configuration-changes"


class ConfigurationChanges:
    """The state between requests. Requests come one after the other, each on a thread.

    `kept` are the contents of files that could not be written; they count as long as the files below them, `base`, are
    the same.
    """

    def __init__(self, started: Configuration, storage: Storage) -> None:
        self.started = started
        self.storage = storage
        self.history = ChangeHistory.of(started)
        self.kept: dict[Path, bytes] = {}
        self.base = ""
        self._seen: OrderedDict[str, Texts] = OrderedDict()  # by digest: what consoles have read

    def contents(self) -> dict[Path, bytes]:
        """Returns the contents of files that count as changed. They are forgotten when somebody changes a file."""
        if self.kept:
            try:
                same = Texts.read(self.started.path).digest == self.base
            except ChangeRefused:
                same = False
            if not same:
                names = ",".join(path.name for path in self.kept)
                why = "a file has changed: what stands in it counts, and the changes that were not written are gone"
                log_event(log, "configuration_changes_dropped", {"files": names, "why": why})
                self.kept, self.base = {}, ""
        return self.kept

    def written(self) -> Texts:
        """Returns the texts of the files as they are on disk. ChangeRefused if they cannot be read."""
        return Texts.read(self.started.path)

    def texts(self) -> Texts:
        """Returns the texts that count now. ChangeRefused if they cannot be read."""
        found = Texts.read(self.started.path, self.contents())
        self._seen[found.digest] = found
        self._seen.move_to_end(found.digest)
        while len(self._seen) > SEEN_MAX:
            self._seen.popitem(last=False)
        return found

    def seen(self, digest: str) -> Texts | None:
        """Returns what a console has read under this digest; None if it is not known any more."""
        return self._seen.get(digest)

    def keep(self, texts: Texts) -> None:
        """Lets changed texts count until the restart."""
        written = self.written()
        self.kept, self.base = texts.contents(written), written.digest

    def why_off(self, texts: Texts | None) -> str:
        """Returns why no change is taken at all, "" if changes are."""
        started = self.started
        if started.ha.hosted is not None:
            return "this backup is hosted by another node, and its configuration is that one's: change it there"
        if not started.own.configuration_changes:
            return (
                f"this node does not let management change its configuration: write `{OPTION} = true` in"
                f" {self._own_name(texts)} and start it again"
            )
        if texts is not None and texts.form == WILDFLY:
            return (
                f"{started.path.name} is a {texts.form}: management does not change it. `atalanta convert` makes a"
                " broker.xml of it; or change the file by hand, and run `atalanta reload`"
            )
        return ""

    def _own_name(self, texts: Texts | None) -> str:
        return "atalanta.toml" if texts is None else texts.own_path.name

    def why_not_written(self, texts: Texts, files: list[Path]) -> str:
        """Returns why these files are not written, "" if they are."""
        if texts.form == CLASSIC:
            return f"an {texts.form} is not written by management: take the difference into {texts.path.name}"
        if self.kept:
            return "earlier changes that could not be written count until the restart, and this one goes with them"
        return next((why for why in (why_not_written(file) for file in files) if why), "")
