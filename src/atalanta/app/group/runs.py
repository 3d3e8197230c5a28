"""The runs of a member of a replicated group: passive until it takes over, then active, and so on, in one process.

Source: ReplicationPrimaryActivation and ReplicationBackupActivation of Artemis. Differences: a register says who is
active and who is in sync (ha/register.py); a member keeps its journal, and catches up from where it was.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from typing import TYPE_CHECKING

from atalanta.app.group.active_run import ActiveRun
from atalanta.app.group.member import GroupMember
from atalanta.app.group.replica_run import ReplicaRun, heard_group
from atalanta.app.passive_run import Doors
from atalanta.app.running_node import Ready, bound_shell
from atalanta.app.web import start_web
from atalanta.cluster.connection.colocation_seat import ColocationSeat
from atalanta.config.configuration import Configuration
from atalanta.kernel.security.security import Security
from atalanta.runtime.clock import steady_ns, system_clock
from atalanta.runtime.ha.group.member_folder import MemberFolder
from atalanta.runtime.ha.guard.line import GuardLine
from atalanta.runtime.ids import SystemIds
from atalanta.runtime.network_check.check import NoCheck, network_check
from atalanta.runtime.network_check.guard import NetworkGuard
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.allocator import trim_allocator
from atalanta.runtime.process.event_loop import unsettle_collector
from atalanta.runtime.process.logs import log_event

if TYPE_CHECKING:
    from atalanta.web.server import WebServer

log = logging.getLogger("atalanta.app")


async def serve_group(
    configuration: Configuration,
    security: Security,
    folder: MemberFolder,
    line: GuardLine | None,
    ready: Ready,
    web: str | None = None,
    colocated: ColocationSeat | None = None,
) -> int:
    """Runs this member of the group in the running loop, and returns the exit status. `line` is that to the guard of
    this process."""
    loop = asyncio.get_running_loop()
    server = await start_web(web) if web is not None else None
    check = network_check(loop, configuration.network_check) or NoCheck()
    guard = NetworkGuard(loop, check, configuration.network_check.period_ms / 1_000)
    member = GroupMember(configuration, folder, line, ready, colocated)
    try:
        if server is not None:
            guard.on_change = server.network_changed
        return await guard.run(ReplicatedRuns(member, security, server, guard).next)
    finally:
        await member.close()
        if server is not None:
            await server.stop()


class ReplicatedRuns:
    """The runs of one process. `next` is called by the network guard."""

    def __init__(
        self, member: GroupMember, security: Security, server: WebServer | None, guard: NetworkGuard
    ) -> None:
        self.member = member
        self.security = security
        self.server = server
        self.guard = guard
        self._damaged = False  # the next passive run repairs the journal

    async def next(self) -> int | None:
        """Follows and serves, again and again. Returns the exit status, None after a lost network."""
        kept_messages = False
        while True:
            self._tell_web("passive")
            shell = bound_shell(self.member.configuration, signals=False, clock=system_clock(steady_ns))
            active = ActiveRun(self.member, self.security, self.server, shell, kept_messages)
            try:
                passive = await self._follow(shell, active)
            except BaseException:
                shell.accept_no_more()
                await active.close()
                raise
            if passive.follower is None:
                shell.accept_no_more()
                await active.close()
                if passive.listens and not passive.stopping:
                    continue
                return None if passive.paused else exit_codes.STOPPED
            shell.begin_clock(passive.last_instant.at(steady_ns()))
            shell.listen_early()
            self._tell_web("active")
            self.guard.born(shell)
            if await active.run(passive.follower, passive.replay):
                return active.status
            kept_messages = active.kept_messages
            unsettle_collector()
            trim_allocator()

    async def _follow(self, doors: Doors, active: ActiveRun) -> ReplicaRun:
        """Runs passively until the member has taken over, or ends. It learns the node id of its group first."""
        member = self.member
        while True:
            run = ReplicaRun(member, doors, active.prepare, self._damaged)
            if self.server is not None:
                run.show_passive = self.server.show_passive
            self.guard.born(run)
            if not member.primary:
                member.tell_passive()  # a primary that serves at once does not say so
            # A new primary looks whether its group has an active node, and founds a group if there is none.
            founds = member.folder.node_id is None and member.primary
            await run.run(founding_wait_s(member) if founds else None)
            self._damaged = run.damaged
            if run.damaged:
                member.rename()
            if run.stopping or run.listens or run.follower is not None:
                return run
            if run.damaged:
                continue
            found = run.node_id or uuid.UUID(bytes=SystemIds().uuid())
            founded = run.founded or run.node_id is None
            member.folder.identify(found, learned=not founded)
            log_event(log, "member_identified", {"node_id": found, "founded": founded})

    def _tell_web(self, role: str) -> None:
        if self.server is not None:
            self.server.role_changed(role)


def founding_wait_s(member: GroupMember) -> float:
    """Returns for how long a new primary looks for an active node, in seconds, before it founds a group."""
    group = heard_group(member.configuration)
    return max(member.terms.wait_ns / 1e9, 0 if group is None else group.initial_wait_timeout_ms / 1_000)
