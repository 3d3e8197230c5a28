"""`atalanta ha status`, `handover`, `demote`, `promote`: a pair with a shared store, by its folder alone."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Final

import typer

from atalanta.app.connectors import announced_connectors
from atalanta.cli.output.outcome import NOT_THERE, TIMED_OUT, Refused, reported
from atalanta.cli.output.tables import show_table
from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.configuration import Configuration
from atalanta.config.problems import ConfigError
from atalanta.ha.folder_lease import ACTIVE, STOPPED
from atalanta.ha.policy import SHARED_STORE
from atalanta.runtime.ha.epoch_names import EPOCHS_NAME
from atalanta.runtime.ha.shared_store import look_at_store
from atalanta.runtime.ha.store_requests import HANDOVER, PROMOTE, post_request, take_request
from atalanta.runtime.process.exit_codes import BAD_CONFIGURATION, BAD_DATA
from atalanta.survey.members.pair_state import REMEDIES, PairState, pair_state

SUBFOLDERS: Final = ("", "journal", "data/journal")
LOOK_S: Final = 0.1


def run_status(place: Path, json_output: bool) -> None:
    """Shows which process serves and which ones wait."""
    with reported():
        seen = look(place)
        holder = seen.view.record.holder if seen.view.record is not None else ""
        if json_output:
            typer.echo(json.dumps(described(seen, holder)))
            return
        rows = [("active" if seen.state == ACTIVE else seen.state, holder, "", str(seen.view.epoch))]
        rows += [("passive", each.place, each.role, "") for each in seen.waiting]
        show_table(["state", "process", "role", "epoch"], rows, right=["epoch"])
        if seen.state != ACTIVE:
            typer.echo(REMEDIES[seen.state], err=True)


def run_handover(place: Path, wait_s: float) -> None:
    """Lets a waiting process serve."""
    with reported():
        seen = look(place)
        if seen.state != ACTIVE:
            raise Refused(f"no process serves this store now: {REMEDIES[seen.state]}", TIMED_OUT)
        if not seen.waiting:
            raise Refused("no other process waits for this store: start the backup first", TIMED_OUT)
        request(seen, HANDOVER, wait_s)


def run_demote(place: Path, wait_s: float) -> None:
    """Lets a waiting process serve, if the one of `place` does. A journal folder names no process: the active one."""
    with reported():
        seen = look(place)
        own = configuration_of(place)
        holder = seen.view.record.holder if seen.view.record is not None else ""
        if own is not None:
            role, connectors = own.ha.role, announced_connectors(own)
            serves = seen.state == ACTIVE and holder.startswith(f"{own.broker.name} ({role}, process ")
            waits = any(each.role == role and each.connectors == connectors for each in seen.waiting)
            if waits and (connectors or not serves):
                typer.echo(f"{own.broker.name} is passive already; the store is {seen.state}: {holder}")
                return
            if not serves:
                raise Refused(f"{own.broker.name} does not run: nothing to demote", TIMED_OUT)
        elif seen.state != ACTIVE:
            raise Refused(f"no process serves this store now: {REMEDIES[seen.state]}", TIMED_OUT)
        if not seen.waiting:
            raise Refused("no other process waits for this store: start the other one first", TIMED_OUT)
        request(seen, HANDOVER, wait_s)


def run_promote(place: Path, wait_s: float) -> None:
    """Lets a backup serve after a stop without a failover."""
    with reported():
        seen = look(place)
        if seen.state != STOPPED:
            raise Refused(
                f"the store is {seen.state}, not stopped: nothing to promote (`atalanta ha handover` moves the service "
                "of a process that is active)",
                TIMED_OUT,
            )
        if not seen.waiting:
            raise Refused("no process waits for this store: start the backup first", TIMED_OUT)
        request(seen, PROMOTE, wait_s)


def request(seen: PairState, what: str, wait_s: float) -> None:
    """Posts the request, and waits until another process has begun an epoch."""
    post_request(seen.journal, what)
    end = time.monotonic() + wait_s
    while time.monotonic() < end:
        time.sleep(LOOK_S)
        view = look_at_store(seen.journal)
        if view.epoch > seen.view.epoch and view.complete and view.record is not None:
            typer.echo(f"{view.record.holder} serves, epoch {view.epoch}")
            return
    take_request(seen.journal, what)
    raise Refused(f"no other process serves after {wait_s:g} s; the request is withdrawn", TIMED_OUT)


def look(place: Path) -> PairState:
    """Returns the state of the pair at `place`. Raises Refused."""
    return pair_state(find_store(place))


def configuration_of(place: Path) -> Configuration | None:
    """Returns the configuration of a broker.xml or of an instance's folder; None for another place. Refused (65)."""
    configured = place / "etc" / "broker.xml" if place.is_dir() else place
    if not configured.is_file():
        return None
    try:
        return read_broker_xml(configured, dict(os.environ), alone=True)
    except ConfigError as error:
        raise Refused(str(error.problems[0]), BAD_CONFIGURATION) from error


def find_store(place: Path) -> Path:
    """Returns the journal folder of a pair. Refused (66, 65) if there is none."""
    configuration = configuration_of(place)
    if configuration is not None:
        candidates = [configuration.journal_folder]
    elif place.is_dir():
        candidates = [place / below for below in SUBFOLDERS]
    else:
        raise Refused(f"{place}: there is no such folder or file", NOT_THERE)
    for folder in candidates:
        if (folder / EPOCHS_NAME).is_dir():
            return folder
    raise Refused(f"{candidates[0]}: this is not the store of a pair, or no process of it was started yet", BAD_DATA)


def has_shared_store(place: Path) -> bool:
    """Returns whether the instance or broker.xml at `place` is of a pair with a shared store. Raises Refused."""
    configured = place / "etc" / "broker.xml" if place.is_dir() else place
    try:
        return read_broker_xml(configured, dict(os.environ), alone=True).ha.form == SHARED_STORE
    except ConfigError as error:
        raise Refused(str(error.problems[0]), BAD_CONFIGURATION) from error


def described(seen: PairState, holder: str) -> dict[str, object]:
    """Returns the state for programs."""
    record = seen.view.record
    return {
        "store": str(seen.journal),
        "state": seen.state,
        "epoch": seen.view.epoch,
        "holder": holder,
        "lease_ms": 0 if record is None else record.length_ns // 1_000_000,
        "passive": [{"role": each.role, "address": each.place} for each in seen.waiting],
    }
