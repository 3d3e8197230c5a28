"""The state of a member of a replicated group, as its folder and the register of its group show it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from atalanta.ha.policy import HaPolicy
from atalanta.ha.register import Register, RegisterDamaged
from atalanta.runtime.disk.data_folder import read_node_id
from atalanta.runtime.ha.group.member_folder import read_member
from atalanta.runtime.ha.group.member_status import MemberStatus, read_status
from atalanta.runtime.ha.managers.configured_manager import configured_manager
from atalanta.runtime.ha.managers.manager import Manager, ManagerUnavailable

LIFE_S: Final = 1.2  # in which a process that lives writes its status at least once
UNMET: Final = (
    "this member has not met an active member of its group yet: start the primary. If it serves, `replication_refused` "
    "in the log of this member says why the two do not agree"
)
ACTIVE: Final = "active"
STOPPED: Final = "stopped"


class NoMember(Exception):
    """No member of a replicated group was started in this folder yet."""


@dataclass
class GroupState:
    """The answers of one member and of the register. `status` is None if the member's process does not live."""

    journal: Path
    member: str
    status: MemberStatus | None
    register: Register | None
    why: str  # why the register cannot be read, "" if it can
    unmet: bool = False  # it does not know the node id of its group, and so not its register

    @property
    def state(self) -> str:
        """Returns the state of the member in a word."""
        return STOPPED if self.status is None else self.status.state


async def group_state(journal: Path, ha: HaPolicy, instance: Path) -> GroupState:
    """Returns the state of the member with this journal folder: looks twice, so that the status of a process that
    lives has changed. Raises NoMember, ManagerRefused."""
    member = read_member(journal)
    if not member:
        raise NoMember(f"{journal}: no member of a replicated group was started here yet")
    before = read_status(journal)
    if before is None:
        status = None
    else:
        await asyncio.sleep(LIFE_S)
        status = read_status(journal)
        if status is not None and status.beat == before.beat and status.member == before.member:
            status = None
    if read_node_id(journal) is None:
        return GroupState(journal, member, status, None, "", unmet=True)
    manager = manager_of(ha, journal, instance)
    try:
        register, why = await read_register(manager)
    finally:
        await manager.close()
    return GroupState(journal, member, status, register, why)


def manager_of(ha: HaPolicy, journal: Path, instance: Path) -> Manager:
    """Returns the manager of the member's group. Raises ManagerRefused."""
    if ha.manager is None:
        raise AssertionError("a member without a manager")
    return configured_manager(ha.manager, str(read_node_id(journal)), instance)


async def read_register(manager: Manager) -> tuple[Register | None, str]:
    """Returns the register, None before there is one; and why it cannot be read, "" if it can."""
    try:
        found = await manager.read()
    except (ManagerUnavailable, RegisterDamaged) as error:
        return None, str(error)
    return (None if found is None else found.register), ""
