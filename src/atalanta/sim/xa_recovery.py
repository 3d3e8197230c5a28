"""Who looks for branches in doubt at a node that their worker does not know: where its node left them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.sim.clients import SimClient
from atalanta.sim.ledger import Violation
from atalanta.sim.network import Network
from atalanta.sim.world import SECOND, World
from atalanta.sim.xa_branches import COMMIT, name_of
from atalanta.wire.core.packets_base import Packet
from atalanta.wire.core.packets_connection import ExceptionResponse
from atalanta.wire.core.packets_transaction import (
    XaCommit,
    XaInDoubt,
    XaInDoubtResponse,
    XaResponse,
    XaRollback,
    Xid,
)

if TYPE_CHECKING:
    from atalanta.sim.xa_load import Transactions


class Recoverer(SimClient):
    """A recovery manager with the log of all workers. Of the workers at its own node each looks after its own."""

    transacted = True
    xa = True

    def __init__(
        self, world: World, network: Network, name: str, target: str, subject: Transactions
    ) -> None:
        super().__init__(world, network, name, target)
        self.subject = subject
        self.steps: list[str] = []  # the branch that an answer is about, "" the list of them

    def on_ready(self) -> None:
        self._look(self.life, self.session)

    def _look(self, life: int, session: int) -> None:
        if self.life == life and self.session == session and self.ready:
            if not self.steps:
                self.steps.append("")
                self.send(XaInDoubt())
            self.world.at(2 * SECOND, lambda: self._look(life, session))

    def on_packet(self, packet: Packet) -> None:
        if isinstance(packet, XaInDoubtResponse):
            self.steps.pop(0)
            for xid in packet.xids:
                self._end(xid)
        elif isinstance(packet, XaResponse):
            name = self.steps.pop(0)
            branch = self.subject.branches[name]
            if packet.error:
                raise Violation(
                    f"{self.name}: branch {name} to be {branch.state}: {packet.message}", branch.keys[0]
                )
            self.subject.ended(name, branch.state == COMMIT)
        elif isinstance(packet, ExceptionResponse):
            raise Violation(f"{self.name}: {packet.message}")

    def _end(self, xid: Xid) -> None:
        name = name_of(xid)
        if name.startswith(f"xw-{self.target}/"):
            return
        self.subject.decide(name)
        branch = self.subject.branches[name]
        branch.told = True
        self.steps.append(name)
        commit = branch.state == COMMIT
        self.send(XaCommit(xid, False) if commit else XaRollback(xid))

    def on_lost(self) -> None:
        self.steps = []
