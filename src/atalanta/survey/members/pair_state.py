"""The state of a pair with a shared store, as its folder shows it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from atalanta.ha.folder_lease import ACTIVE
from atalanta.runtime.ha.member_file import MemberRecord, read_members
from atalanta.runtime.ha.shared_store import MEMBERS_NAME, StoreView, look_at_store

LIFE_S: Final = 1.2  # in which a process that lives writes its file, and its lease, at least once
REMEDIES: Final = {
    "none": "no process has served this store yet: start the primary",
    "released": "the store is free: a waiting process takes it at once; start one if none waits",
    "stopped": "the process that served was stopped without a failover: start a primary, or `atalanta ha promote`",
    "ended": "the process that served has ended: a waiting process takes the store at once; start one if none waits",
    "silent": "the process that served does not renew its lease: a waiting process takes the store after lease_ms",
}


@dataclass
class PairState:
    """The state of a pair, seen over LIFE_S."""

    journal: Path
    view: StoreView
    renewed: bool
    waiting: list[MemberRecord]

    @property
    def state(self) -> str:
        """Returns the state in words."""
        if self.view.state != ACTIVE:
            return self.view.state
        if self.view.holder_gone:
            return "ended"
        return ACTIVE if self.renewed else "silent"


def pair_state(journal: Path) -> PairState:
    """Returns the state of the pair with this journal folder: looks twice, so that what is alive has changed."""
    before, members = look_at_store(journal), beats(journal)
    time.sleep(LIFE_S)
    view = look_at_store(journal)
    waiting = [
        each for each in read_members(journal / MEMBERS_NAME) if members.get(each.name) not in (None, each.beat)
    ]
    # A holder that knows of no other process writes nothing.
    alone = view.locked and not waiting
    renewed = alone or view.epoch != before.epoch or view.content != before.content
    return PairState(journal, view, renewed, waiting)


def beats(journal: Path) -> dict[str, int]:
    """Returns the count of each member's file."""
    return {each.name: each.beat for each in read_members(journal / MEMBERS_NAME)}
