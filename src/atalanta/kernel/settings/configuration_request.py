"""A request about the configuration files of a node, and its answer: management asks, the process has the files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

LIST: Final = "list"
PREVIEW: Final = "preview"
CHANGE: Final = "change"
HISTORY: Final = "history"
UNDO: Final = "undo"
DOWNLOAD: Final = "download"


@dataclass(frozen=True)
class ConfigurationRequest:
    """One request. `text` is the JSON of the caller, `user` the user, `remote` the address of the connection."""

    kind: str
    text: str = field(default="", repr=False)
    user: str = ""
    remote: str = ""


@dataclass(frozen=True)
class ConfigurationEvent:
    """An event of the node that the request leads to."""

    name: str
    fields: dict[str, object]


@dataclass(frozen=True)
class ConfigurationAnswer:
    """The end of a request: `result` is written as JSON; `why` is the reason why there is none, else ""."""

    result: object = None
    why: str = ""
    events: tuple[ConfigurationEvent, ...] = ()
