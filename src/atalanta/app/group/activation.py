"""The activation of a member of a replicated group: it follows the active member until it takes over.

Source: ReplicationPrimaryActivation and ReplicationBackupActivation of Artemis. Differences: a register says who is
active and who is in sync (ha/register.py); a member keeps its journal, and catches up from where it was.
"""

from __future__ import annotations

import logging
import uuid

from atalanta.app.group.active_run import MemberRun
from atalanta.app.group.member import GroupMember, open_member
from atalanta.app.group.replica_run import ReplicaRun, heard_group
from atalanta.app.life import ActiveRun, Life
from atalanta.app.running_node import BoundPorts, Ready, bound_shell
from atalanta.cluster.connection.colocation_seat import ColocationSeat
from atalanta.config.configuration import Configuration
from atalanta.runtime.clock import steady_ns, system_clock
from atalanta.runtime.ha.guard.line import GuardLine
from atalanta.runtime.ids import SystemIds
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.logs import log_event

log = logging.getLogger("atalanta.app")


class GroupActivation:
    """The activations of one process. `line` is that to the guard of this process."""

    def __init__(
        self, configuration: Configuration, line: GuardLine | None, ready: Ready, colocated: ColocationSeat | None
    ) -> None:
        """`colocated`: of a process that may host backups of other members. StartupError if its folder cannot be
        used."""
        self._folder = open_member(configuration)
        self.member = GroupMember(configuration, self._folder, line, ready, colocated)
        self._damaged = False  # the next passive run repairs the journal

    async def become_active(self, life: Life) -> ActiveRun | int | None:
        """Implements Activation.become_active: follows the active member until this one may take over."""
        while True:
            life.tell_web("passive")
            shell = bound_shell(life.configuration, clock=system_clock(steady_ns))
            active = MemberRun(life, self.member, shell)
            try:
                passive = await self._follow(life, shell, active)
            except BaseException:
                shell.accept_no_more()
                await active.close()
                raise
            if passive.follower is not None:
                break
            shell.accept_no_more()
            await active.close()
            if passive.listens and not passive.stopping:
                continue
            return None if passive.paused else exit_codes.STOPPED
        shell.begin_clock(passive.last_instant.at(steady_ns()))
        shell.listen_early()
        life.tell_web("active")
        life.watch.begun(shell)
        active.take_over(passive.follower, passive.replay)
        return active

    async def _follow(self, life: Life, ports: BoundPorts, active: MemberRun) -> ReplicaRun:
        """Runs passively until the member has taken over, or ends. It learns the node id of its group first."""
        member = self.member
        while True:
            run = ReplicaRun(member, ports, active.prepare, self._damaged)
            if life.server is not None:
                run.show_passive = life.server.show_passive
            life.watch.begun(run)
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

    async def close(self) -> None:
        """Implements Activation.close."""
        await self.member.close()
        self._folder.close()


def founding_wait_s(member: GroupMember) -> float:
    """Returns for how long a new primary looks for an active node, in seconds, before it founds a group."""
    group = heard_group(member.configuration)
    return max(member.terms.wait_ns / 1e9, 0 if group is None else group.initial_wait_timeout_ms / 1_000)
