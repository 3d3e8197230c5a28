"""The first register of a group: when a primary may write it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.cluster.replication.passive.active_search import ActiveSearch


class FirstRegister:
    """The look for a member that serves, before the register is founded: one that does has its register, wherever that
    has gone. A disk may have been lost with the register, and with everything that this member had.

    `learned`: an active node has told the node id. `serving` is the active node that was found, "" before.
    """

    def __init__(self, learned: bool) -> None:
        self.learned = learned
        self.serving = ""
        self.until_ns: int | None = None  # None: nobody is looked for

    def may_found(self, now: int, wait_ns: int, search: ActiveSearch) -> bool:
        """Returns whether no other member serves. Begins to look for one, at most for `wait_ns`."""
        if self.learned or self.serving:
            return False
        if self.until_ns is None:
            self.until_ns = now + wait_ns
            search.search()
        if now < self.until_ns and not search.nobody():
            return False
        search.halt("this member begins a new group")
        return True

    def waits(self) -> str:
        """Returns what a member waits for that must not found the group, "" if it may."""
        if not self.learned and not self.serving:
            return ""
        return (
            f"the register of the group is gone, and {self.serving or 'another member'} has served it: this member "
            "waits until an active member has written the register again. If none serves, start the one that served "
            "last, and let it serve: atalanta ha promote --lossy"
        )
