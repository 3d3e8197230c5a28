"""The name of an XA branch that a task of a batch prepared."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from typing import Final

_FORM: Final = re.compile(r"([^/]+)/([0-9]{1,19})/([0-9]{1,10}\.[0-9a-f]{32})")


@dataclass(frozen=True)
class BranchName:
    """`query` and `batch` are those of Spark; `attempt` is partition.uuid: every attempt of a task has its own."""

    query: str
    batch: int
    attempt: str

    @staticmethod
    def new(query: str, batch: int, partition: int) -> BranchName:
        return BranchName(query, batch, f"{partition}.{uuid.uuid4().hex}")

    @staticmethod
    def parse(text: str) -> BranchName | None:
        """Returns the branch of `str(name)`, or None for any other text."""
        found = _FORM.fullmatch(text)
        return None if found is None else BranchName(found[1], int(found[2]), found[3])

    def __str__(self) -> str:
        return f"{self.query}/{self.batch}/{self.attempt}"
