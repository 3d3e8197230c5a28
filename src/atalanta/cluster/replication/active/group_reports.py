"""The reports of an active node on its group: who is in sync, and for whom the clients wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.ha.register import Register
    from atalanta.ha.replication.active import Active
    from atalanta.kernel.ports import Trace

WHAT_TO_DO: Final = (
    "start the manager: then this node removes the member that is lost, and goes on. Or start that member"
)


class GroupReports:
    """The reports of one epoch, each of them once. `in_sync` is the in-sync set as it was reported last."""

    def __init__(self, trace: Trace, in_sync: tuple[str, ...], min_in_sync: int) -> None:
        self.in_sync = in_sync
        self._trace = trace
        self._min_in_sync = min_in_sync
        self._told_missing = False
        self._told_replaced = ""  # the active member of the other register
        self._awaited: list[str] = []

    def tell_members(self, in_sync: tuple[str, ...]) -> None:
        """Reports who has entered or left the in-sync set."""
        for member in in_sync:
            if member not in self.in_sync:
                self._trace.event("replica_in_sync", {"member": member})
        for member in self.in_sync:
            if member not in in_sync:
                self._trace.event("replica_removed", {"member": member})
        self.in_sync = in_sync

    def tell_replaced(self, epoch: int, register: Register) -> None:
        """Tells once that another register was founded, or an old one restored: another member may serve, too."""
        if register.active != self._told_replaced:
            self._told_replaced = register.active
            self._trace.event(
                "register_replaced",
                {
                    "epoch": epoch,
                    "found": register.epoch,
                    "active": register.active,
                    "what_to_do": f"{register.active} may serve beside this member: stop it. Delete nothing: restart"
                    " this member, and let it serve: atalanta ha promote --lossy",
                },
            )

    def tell_waits(self, now: int, active: Active, problem: str) -> None:
        """Reports what clients wait for: for too few members in sync, or for a member that cannot be removed.

        `problem` says why the register cannot be written, "" if it can. Without the answers of a required member
        nothing is confirmed, and the lease ends.
        """
        certain = active.view.certain_members()
        if certain >= self._min_in_sync:
            self._told_missing = False
        elif not self._told_missing:
            self._told_missing = True
            self._trace.event("replicas_missing", {"in_sync": certain, "required": self._min_in_sync})
        awaited = active.silent(now)
        if awaited and problem and not self._awaited:
            self._awaited = awaited
            members = ", ".join(awaited)
            self._trace.event("replica_awaited", {"member": members, "why": problem, "what_to_do": WHAT_TO_DO})
        elif self._awaited and not awaited:
            self._trace.event("replica_wait_over", {"member": ", ".join(self._awaited)})
            self._awaited = []
