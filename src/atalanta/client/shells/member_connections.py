"""The connections of a consumer at all members of a cluster, one to each member."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from atalanta.client.options import ClientOptions, Server
from atalanta.client.shells.asyncio_shell import AsyncioShell
from atalanta.client.shells.shell import LOG, backup_of
from atalanta.client.url_options import FOREVER
from atalanta.wire.core.client.member_consumers import MemberConsumers, MemberPort
from atalanta.wire.core.packets.session import STAY_ADDRESS

if TYPE_CHECKING:
    from atalanta.wire.core.client.session import ClientSession
    from atalanta.wire.core.client.settings import SessionSettings
    from atalanta.wire.core.client.topology import Member

CLOSE_S = 5.0  # maximum wait for the answers to the ends of the sessions


class MemberConnections(MemberPort):
    """The connections; each goes on for ever, at its member's addresses only. `settings` are those of their sessions.

    `main` names the members. The one that it is connected to is dialled at the address that it has reached, if it is
    sure which one that is: an Artemis node names the members in any order, so that the first need not be itself.
    """

    consumers: MemberConsumers

    def __init__(self, main: AsyncioShell, settings: Callable[[], SessionSettings]) -> None:
        self._main = main
        self._settings = settings
        self._shells: dict[str, MemberShell] = {}
        self._timers: set[asyncio.TimerHandle] = set()
        self._endings: set[asyncio.Task[None]] = set()

    def begin(self, consumers: MemberConsumers) -> None:
        """Begins to follow the topology; if the main connection has failed, so do the consumers."""
        self.consumers = consumers
        listeners = self._main.listeners
        listeners.setdefault("topology", []).append(self._topology)
        listeners.setdefault("failed", []).append(self._failed)
        self._failed()  # that of a connection that has ended is not told again
        self._topology()

    def _topology(self) -> None:
        engine = self._main.engine
        if not engine.connected or not engine.topology_complete:
            return  # what the next server says counts
        members = [each for each in engine.topology.values() if each.host is not None]
        self.consumers.topology(members or [self._alone()])

    def _alone(self) -> Member:
        """Returns the broker of the main connection: it names no members."""
        from atalanta.wire.core.client.topology import Member

        server = self._main.dialled
        assert server is not None
        return Member(self._main.engine.node_id or "", server.host, server.port)

    def _failed(self) -> None:
        error = self._main.engine.failed
        if error is not None:
            self.consumers.fail(error)

    # -- MemberPort -----------------------------------------------------------------------------
    def dial(self, member: Member) -> ClientSession:
        options = replace(
            self._main.options,
            servers=self._servers(member),
            members=[],
            priority=[],
            finder=None,
            balancing=None,
            local_port=0,  # the main connection has it
            client_id=None,  # the main connection has it
            zone="",
            stay=True,
            limits_first_login=False,
            reconnect_attempts=FOREVER,
            failover_attempts=0,
            initial_connect_attempts=FOREVER,
        )
        shell = MemberShell(options, member.node_id, self._lost)
        self._shells[member.node_id] = shell
        settings = replace(
            self._settings(), name=str(uuid.uuid4()), client_id=None, default_address=STAY_ADDRESS
        )
        session = shell.engine.session(settings)
        shell.start()
        return session

    def _servers(self, member: Member) -> list[Server]:
        """Returns the addresses of a member and of its backup."""
        found = _announced(member)
        dialled = self._main.dialled
        if dialled is not None and member.node_id == self._main_node_id(dialled):
            found.insert(0, dialled)
        return list(dict.fromkeys(found))

    def _main_node_id(self, dialled: Server) -> str | None:
        """Returns the node id of the member that the main connection has reached there; None if that is not sure."""
        engine = self._main.engine
        for each in engine.topology.values():
            if dialled in _announced(each):
                return each.node_id
        return engine.node_id if self._main.settles or len(engine.topology) <= 1 else None

    def hang_up(self, node_id: str) -> None:
        shell = self._shells.pop(node_id, None)
        if shell is not None:
            ending = asyncio.get_running_loop().create_task(_end(shell))
            self._endings.add(ending)
            ending.add_done_callback(self._endings.discard)

    def _lost(self, shell: MemberShell) -> None:
        if self._shells.get(shell.node_id) is shell:  # otherwise it was given up, and another one may be in its place
            self.consumers.lost(shell.node_id)

    def later(self, delay_ns: int, call: Callable[[], None]) -> None:
        def due() -> None:
            self._timers.discard(timer)
            call()

        timer = self._main.loop.call_later(delay_ns / 1e9, due)
        self._timers.add(timer)

    def warn(self, text: str) -> None:
        LOG.warning("a consumer at all members: %s", text)

    async def close(self) -> None:
        """Ends all connections."""
        for listeners, own in (("topology", self._topology), ("failed", self._failed)):
            heard = self._main.listeners.get(listeners, [])
            if own in heard:
                heard.remove(own)
        for timer in self._timers:
            timer.cancel()
        for node_id in list(self._shells):
            self.hang_up(node_id)
        await asyncio.gather(*self._endings)


def _announced(member: Member) -> list[Server]:
    found: list[Server] = []
    if member.host is not None and member.port is not None:
        found.append(Server(member.host, member.port))
    backup = backup_of(member)
    return found if backup is None else [*found, backup]


class MemberShell(AsyncioShell):
    """A connection to one member, which tells of each loss, and when none of its addresses could be reached."""

    def __init__(self, options: ClientOptions, node_id: str, tell_lost: Callable[[MemberShell], None]) -> None:
        super().__init__(options)
        self.node_id = node_id
        self._tell_lost = tell_lost
        self._warned = False

    def attempt_failed(self, now: int, why: str) -> None:
        failed_before = self.policy.passes_failed
        super().attempt_failed(now, why)
        if self.policy.passes_failed == failed_before:
            return
        if not self._warned and not self.lost_count:
            self._warned = True
            LOG.warning(
                "a consumer at all members: messages of member %s wait, which cannot be reached: %s",
                self.node_id, self.policy.last_error,
            )  # fmt: skip
        self._tell_lost(self)

    def transport_lost(self, now: int, why: str) -> None:
        super().transport_lost(now, why)
        self._tell_lost(self)


async def _end(shell: AsyncioShell) -> None:
    """Closes the sessions, so that their messages return at once, and then the connection."""
    engine = shell.engine
    if engine.connected:
        for session in list(engine.sessions.values()):
            await shell.wait(session.close(), CLOSE_S)
    engine.close()
    await shell.shut()
