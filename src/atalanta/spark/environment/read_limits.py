"""The limits of a batch, for Spark 4.0 and 4.1, which have no such types (see compatibility.py)."""

from __future__ import annotations

from dataclasses import dataclass


class ReadLimit:
    """The limit of a batch."""


class ReadAllAvailable(ReadLimit):
    """The limit of a batch without one."""


@dataclass(frozen=True)
class ReadMaxRows(ReadLimit):
    """The limit of a batch in rows."""

    max_rows: int


@dataclass(frozen=True)
class ReadMaxBytes(ReadLimit):
    """The limit of a batch in bytes."""

    max_bytes: int


class SupportsTriggerAvailableNow:
    """The mark of a source that Spark tells of Trigger.AvailableNow."""
