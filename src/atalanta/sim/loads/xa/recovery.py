"""Recovery of branches in doubt at nodes that took over from the worker's node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.sim.checks.ledger import Violation
from atalanta.sim.clients.client import SimClient, then
from atalanta.sim.loads.xa.branches import COMMIT, name_of
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import SECOND, World
from atalanta.wire.core.client import FAIL, Reply
from atalanta.wire.core.packets import (
    XaCommit,
    XaInDoubt,
    XaInDoubtResponse,
    XaResponse,
    XaRollback,
    Xid,
)

if TYPE_CHECKING:
    from atalanta.sim.loads.xa.transactions import Transactions


class Recoverer(SimClient):
    """A recovery manager with the log of all workers. The workers at its own node recover their branches themselves."""

    transacted = True
    xa = True

    def __init__(
        self, world: World, network: Network, name: str, target: str, subject: Transactions
    ) -> None:
        super().__init__(world, network, name, target)
        self.subject = subject
        self.calls = 0  # whose answers are awaited

    def on_session(self) -> None:
        self._look()

    def on_resumed(self) -> None:
        self._look()

    def _look(self) -> None:
        if not self.calls:
            self.calls += 1
            then(self.session.request(XaInDoubt(), FAIL), self._found)
        self.later(2 * SECOND, self._look)

    def _found(self, reply: Reply) -> None:
        packet = reply.value
        if isinstance(packet, XaInDoubtResponse):
            self.calls -= 1
            for xid in packet.xids:
                self._end(xid)
        elif reply.error is None or not self.cut_short(reply.error):
            raise Violation(f"{self.name}: {reply.error}")

    def _end(self, xid: Xid) -> None:
        name = name_of(xid)
        if name.startswith(f"xw-{self.target}/"):
            return
        self.subject.decide(name)
        branch = self.subject.branches[name]
        branch.told = True
        self.calls += 1
        commit = branch.state == COMMIT
        request = XaCommit(xid, False) if commit else XaRollback(xid)
        then(self.session.request(request, FAIL), lambda reply: self._ended(name, reply))

    def _ended(self, name: str, reply: Reply) -> None:
        branch = self.subject.branches[name]
        packet = reply.value
        if isinstance(packet, XaResponse) and not packet.error:
            self.calls -= 1
            self.subject.ended(name, branch.state == COMMIT)
        elif reply.error is None or not self.cut_short(reply.error):
            why = packet.message if isinstance(packet, XaResponse) else reply.error
            raise Violation(
                f"{self.name}: branch {name} to be {branch.state}: {why}", branch.keys[0]
            )

    def on_lost(self) -> None:
        self.calls = 0
