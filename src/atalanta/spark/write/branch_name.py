"""The name of an XA branch that a task of a batch prepared."""

from __future__ import annotations

import hashlib
import re
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

# Names of older versions end after the uuid.
_FORM: Final = re.compile(
    r"([^/]+)/([0-9]{1,19})/([0-9]{1,10}\.[0-9a-f]{32}(?:\.[0-9a-f]{8}\.[0-9a-f]{8})?)"
)


@dataclass(frozen=True)
class BranchName:
    """`query` and `batch` are those of Spark. Every attempt of a task has its own `attempt`.

    It is partition.uuid.time.servers: when the task began (s since the epoch) and `fingerprint` of its servers, in
    hexadecimal digits.
    """

    query: str
    batch: int
    attempt: str

    @staticmethod
    def new(query: str, batch: int, partition: int, servers: Sequence[str] = ()) -> BranchName:
        began_s = int(time.time())
        attempt = f"{partition}.{uuid.uuid4().hex}.{began_s:08x}.{fingerprint(servers)}"
        return BranchName(query, batch, attempt)

    @staticmethod
    def parse(text: str) -> BranchName | None:
        """Returns the branch of `str(name)`, or None for any other text."""
        found = _FORM.fullmatch(text)
        return None if found is None else BranchName(found[1], int(found[2]), found[3])

    @property
    def began_s(self) -> int | None:
        """Returns when the task began, in s since the epoch; None for a name of an older version."""
        parts = self.attempt.split(".")
        return int(parts[2], 16) if len(parts) == 4 else None

    def is_of(self, servers: Sequence[str]) -> bool:
        """Returns True if the query had the same servers."""
        return self.attempt.endswith(f".{fingerprint(servers)}") and self.began_s is not None

    def __str__(self) -> str:
        return f"{self.query}/{self.batch}/{self.attempt}"


def fingerprint(servers: Sequence[str]) -> str:
    """Returns 8 hexadecimal digits that do not depend on the order of the servers."""
    return hashlib.sha256(",".join(sorted(servers)).encode()).hexdigest()[:8]
