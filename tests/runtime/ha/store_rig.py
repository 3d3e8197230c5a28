"""Processes of a pair on a real folder, in one process of the tests: stores with a clock that a test moves."""

from __future__ import annotations

import time
import uuid
from pathlib import Path

from atalanta.ha.lease import LeaseTerms
from atalanta.runtime.ha.epoch_names import epoch_name
from atalanta.runtime.ha.held_epoch import HeldEpoch
from atalanta.runtime.ha.shared_store import SharedStore

LEASE_NS = 400_000_000


def new_id() -> bytes:
    return uuid.uuid1().bytes


def store(folder: Path, lease_ns: int = LEASE_NS, adopts: bool = False) -> SharedStore:
    """Returns one process' view of the pair in `folder`."""
    terms = LeaseTerms(lease_ns)
    return SharedStore(folder / "journal", folder / "paging", folder / "large", terms, new_id, adopts=adopts)


def taken(found: SharedStore) -> HeldEpoch:
    """Takes the next epoch, whatever the lease says, and begins to serve."""
    found.look()
    held = found.take("test")
    assert held is not None
    held.hold()
    renewals = held._holder.record.renewals
    while held._holder.record.renewals < renewals + 1:
        time.sleep(0.005)
    return held


def epoch_folder(folder: Path, number: int) -> Path:
    return folder / "journal" / "epochs" / epoch_name(number)
