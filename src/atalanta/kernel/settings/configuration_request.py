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
class ConfigurationOutcome:
    """The outcome of a change, for the node's events. `by` is the operator's address, `refused` why it is not done.

    `why_not_written`: it counts until the restart. `undone` is the id of the change that it has taken back, if any.
    """

    by: str
    changes: str
    refused: str = ""
    why_not_written: str = ""
    after_restart: str = ""
    undone: str = ""


class ConfigurationAnswer:
    """The end of a request: `result` is written as JSON; `why` is the reason why there is none, else "". A change
    has an `outcome`, a preview and a list have none."""

    def __init__(self, result: object = None, why: str = "", outcome: ConfigurationOutcome | None = None) -> None:
        self.result = result
        self.why = why
        self.outcome = outcome
