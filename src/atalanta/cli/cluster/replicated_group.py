"""`atalanta ha status`, `handover`, `demote`, `promote`: a member of a replicated group, by its folder and register."""

from __future__ import annotations

import asyncio
import json
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Final

import typer

from atalanta.cli.output.outcome import FAILED, TIMED_OUT, Refused, reported
from atalanta.cli.output.tables import show_table
from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.configuration import Configuration
from atalanta.config.problems import ConfigError
from atalanta.ha.policy import REPLICATION
from atalanta.runtime.ha.group.member_status import MemberStatus
from atalanta.runtime.ha.managers.configured_manager import ManagerRefused
from atalanta.runtime.ha.managers.manager import Manager
from atalanta.runtime.ha.store_requests import (
    HANDOVER,
    PROMOTE,
    PROMOTE_LOSSY,
    post_request,
    take_request,
)
from atalanta.runtime.process.exit_codes import BAD_CONFIGURATION, BAD_DATA, UNAVAILABLE
from atalanta.survey.members.group_state import (
    ACTIVE,
    STOPPED,
    UNMET,
    GroupState,
    NoMember,
    group_state,
    manager_of,
    read_register,
)

LOOK_S: Final = 0.1
UNREADABLE: Final = "the register cannot be read, and without it nobody can stop the member that serves"
UNREADABLE_NOW: Final = (
    "nothing was asked: no other member can take over while the register cannot be read. Start the manager"
)
REMEDY: Final = (
    "Start the manager. If it is lost for good, and every other member is stopped and stays so: name another manager "
    "in the atalanta.toml of this member, start the member again, and promote it with --lossy"
)
LOSSY: Final = "With --lossy this member serves all the same, and what it lacks is lost, though it was confirmed"
AWAY: Final = "away"  # a follower without a connection
HEADS: Final = ("state", "member", "in sync", "epoch", "records", "behind", "for")


def group_of(place: Path) -> Configuration | None:
    """Returns the configuration of a member of a replicated group; None for everything else."""
    path = place / "etc" / "broker.xml" if place.is_dir() else place
    if not path.is_file():
        return None
    try:
        configuration = read_broker_xml(path, dict(os.environ))
    except ConfigError as error:
        raise Refused(str(error.problems[0]), BAD_CONFIGURATION) from error
    replicated = configuration.ha.form == REPLICATION and configuration.ha.manager is not None
    return configuration if replicated else None


def run_status(configuration: Configuration, json_output: bool) -> None:
    """Shows the member, its followers and the register."""
    with reported():
        seen = asyncio.run(look(configuration))
        if json_output:
            typer.echo(json.dumps(_described(seen)))
            return
        register = seen.register
        in_sync = () if register is None else register.in_sync
        ordered = configuration.ha.asynchronous
        rows = []
        if seen.status is None:
            in_step = "?" if seen.why else _sync(seen.member in in_sync, ordered)
            rows.append([STOPPED, seen.member, in_step, "", "", "", ""])
        else:
            own = seen.status
            behind = "" if own.state == ACTIVE else str(own.behind)
            in_step = "?" if seen.why else _sync(own.member in in_sync, ordered)
            rows.append([own.state, own.member, in_step, str(own.epoch), str(own.durable), behind, ""])
            for each in own.followers:
                in_step = _sync(each.in_sync, each.asynchronous)
                state = "follows" if each.connected else AWAY
                rows.append([state, each.member, in_step, "", "", str(each.behind), f"{each.behind_s:.1f} s"])
        show_table(HEADS, rows, right=HEADS[3:])
        if seen.status is not None and seen.status.waits:
            typer.echo(f"it waits: {seen.status.waits}", err=True)
        if seen.why:
            typer.echo(f"the register cannot be read: {seen.why}", err=True)
        elif seen.unmet:
            typer.echo(UNMET, err=True)
        elif register is None:
            typer.echo("the group has no register yet: start the primary", err=True)
        else:
            active = register.active or "nobody"
            typer.echo(f"register: epoch {register.epoch}, active {active}, in sync: {', '.join(in_sync)}")


def run_handover(configuration: Configuration, wait_s: float) -> None:
    """Lets another member serve."""
    with reported():
        seen = asyncio.run(look(configuration))
        if seen.status is None or seen.status.state != ACTIVE:
            active = seen.register.active if seen.register is not None else ""
            raise Refused(
                f"this member, {seen.member}, is {seen.state}: a handover is asked of the active one"
                + (f", {active}" if active and active != seen.member else ""),
                TIMED_OUT,
            )
        _hand_over(configuration, seen.status, seen, wait_s)


def run_demote(configuration: Configuration, wait_s: float) -> None:
    """Lets another member serve, if this one does."""
    with reported():
        seen = asyncio.run(look(configuration))
        if seen.status is None:
            raise Refused(f"the process of this member, {seen.member}, does not run: nothing to demote", TIMED_OUT)
        if seen.status.state != ACTIVE:
            typer.echo(f"{seen.member} is {seen.status.state} already")
            return
        _hand_over(configuration, seen.status, seen, wait_s)


def _hand_over(configuration: Configuration, status: MemberStatus, seen: GroupState, wait_s: float) -> None:
    """Asks the active member, which this one is, to let another one serve."""
    if seen.why:
        raise Refused(f"{UNREADABLE_NOW}: {seen.why}", TIMED_OUT)
    if not any(each.in_sync for each in status.followers):
        raise Refused("no other member is in sync: start the backup, and wait until it is", TIMED_OUT)
    asyncio.run(_request(configuration, seen, HANDOVER, wait_s))


def run_promote(configuration: Configuration, wait_s: float, lossy: bool) -> None:
    """Lets this member serve: the active node that it follows hands over. Without one, a member in sync takes over.

    `lossy`: at once, whatever it lacks.
    """
    with reported():
        seen = asyncio.run(look(configuration))
        if seen.status is None:
            raise Refused(f"the process of this member, {seen.member}, does not run: start it", TIMED_OUT)
        if seen.status.state == ACTIVE:
            raise Refused(f"this member, {seen.member}, is active already", TIMED_OUT)
        if seen.why:
            raise Refused(f"{UNREADABLE}: {seen.why}. {REMEDY}", TIMED_OUT)
        register = seen.register
        if not lossy and not seen.status.active:
            if register is None:
                raise Refused(f"the group has no register: start its primary. {LOSSY}", FAILED)
            if seen.member not in register.in_sync:
                others = ", ".join(register.in_sync)
                raise Refused(f"{seen.member} is not in sync ({others}: start one of these). {LOSSY}", FAILED)
        asyncio.run(_request(configuration, seen, PROMOTE_LOSSY if lossy else PROMOTE, wait_s))


async def _request(configuration: Configuration, seen: GroupState, what: str, wait_s: float) -> None:
    """Posts the request, and waits until the register has another epoch."""
    post_request(seen.journal, what)
    before = 0 if seen.register is None else seen.register.epoch
    end = time.monotonic() + wait_s
    why = ""
    manager = _manager(configuration, seen.journal)
    try:
        while time.monotonic() < end:
            await asyncio.sleep(LOOK_S)
            register, why = await read_register(manager)
            if register is not None and register.epoch > before and register.active:
                typer.echo(f"{register.active} serves, epoch {register.epoch}")
                return
    finally:
        await manager.close()
    withdrawn = take_request(seen.journal, what)
    text = _unanswered(seen.member, what, withdrawn, wait_s)
    raise Refused(f"{text} (the register cannot be read: {why})" if why else text, TIMED_OUT)


def _unanswered(member: str, what: str, withdrawn: bool, wait_s: float) -> str:
    """Returns what is known of a request that had no effect within `wait_s`."""
    head = f"the group has no new epoch after {wait_s:g} s"
    if withdrawn:
        return f"{head}; {member} has not taken the request, and it is withdrawn"
    if what == HANDOVER:
        return f"{head}; {member} has taken the request: `handover_refused` in its log says why it goes on"
    if what == PROMOTE_LOSSY:
        return f"{head}; {member} has taken the request, and goes on until it serves"
    return (
        f"{member} does not serve after {wait_s:g} s. It will as soon as it has everything: `atalanta ha status` "
        "shows how far it is"
    )


async def look(configuration: Configuration) -> GroupState:
    """Returns the state of a member and its register. Raises Refused."""
    try:
        return await group_state(configuration.journal_folder, configuration.ha, configuration.instance)
    except NoMember as error:
        raise Refused(str(error), BAD_DATA) from error
    except ManagerRefused as error:
        raise Refused(str(error), UNAVAILABLE) from error


def _manager(configuration: Configuration, journal: Path) -> Manager:
    try:
        return manager_of(configuration.ha, journal, configuration.instance)
    except ManagerRefused as error:
        raise Refused(str(error), UNAVAILABLE) from error


def _described(seen: GroupState) -> dict[str, object]:
    """Returns the state for programs."""
    register = seen.register
    return {
        "member": seen.member,
        "state": seen.state,
        "status": None if seen.status is None else asdict(seen.status),
        "register": None if register is None else {
            "epoch": register.epoch,
            "active": register.active,
            "in_sync": list(register.in_sync),
            "forced_epoch": register.forced_epoch,
        },
        "register_unreadable": seen.why,
    }  # fmt: skip


def _sync(in_sync: bool, asynchronous: bool) -> str:
    """Returns the word for a member: one that is asynchronous is in sync only when an operator has let it serve."""
    if in_sync:
        return "yes"
    return "asynchronous" if asynchronous else "no"
