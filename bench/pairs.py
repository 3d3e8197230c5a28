"""A pair of brokers for measuring: a primary that serves, and a backup that waits or follows."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bench.broker_xml import Plan, Replica, Store
from bench.brokers import Broker
from bench.context import Context
from bench.measure import BadRun
from bench.settings import CACHE
from tests.ports import free_port

SHARED_STORE = "shared-store"
REPLICATION = "replication"
PLAIN_REPLICATION = "replication without a manager"
RETURN_SECONDS = 60.0
# What a waiting process logs when it could take over: Artemis' codes, and ours.
PASSIVE_WORDS = {
    SHARED_STORE: ("AMQ221109", "AMQ221031", "AMQ221034", "role=passive"),
    REPLICATION: ("AMQ221024",),
    PLAIN_REPLICATION: ("AMQ221024",),
}
# In a group of ours the active member says that another one is in sync.
IN_SYNC = "replica_in_sync"


@contextlib.contextmanager
def pair(
    context: Context, kind: str, form: str, queues: int = 8, alone: bool = False, ring_size: int = 0
) -> Iterator[list[Broker]]:
    """Yields a primary that serves and a backup that could take over; `alone`: that is not started yet. `ring_size`: of
    the queues, see Plan."""
    common = CACHE / "run" / f"common-{kind}"
    shutil.rmtree(common, ignore_errors=True)
    common.mkdir(parents=True)
    ports = [free_port(), free_port()]
    brokers = [
        context.brokers.new(kind, plan_of(form, role, common, peer, queues, ring_size), port)
        for port, peer, role in zip(ports, reversed(ports), ("primary", "backup"), strict=True)
    ]
    try:
        brokers[0].start()
        if not alone:
            brokers[1].process.launch()
            wait_passive(brokers[1], brokers[0], form)
        yield brokers
    finally:
        for broker in brokers:
            broker.close()
        shutil.rmtree(common, ignore_errors=True)


def plan_of(form: str, role: str, common: Path, peer_port: int, queues: int, ring_size: int) -> Plan:
    """Returns the plan of a member; `common` is a folder that both have."""
    plan = Plan(queues, peer_ports=(peer_port,), ring_size=ring_size)
    if form == SHARED_STORE:
        return replace(plan, store=Store(str(common), role))
    return replace(plan, replica=Replica(role, str(common) if form == REPLICATION else ""))


def wait_passive(broker: Broker, active: Broker, form: str) -> None:
    """Waits until `broker` could take over from `active`: Artemis with a shared store is ready 2 s after it says so."""
    end = time.monotonic() + RETURN_SECONDS
    while not could_take_over(broker, active, form):
        if time.monotonic() > end:
            raise BadRun(f"{broker.kind} does not become passive:\n{broker.process.tail()}")
        time.sleep(0.05)
    time.sleep(2)


def could_take_over(broker: Broker, active: Broker, form: str) -> bool:
    """Returns whether a log says that `broker` could take over from `active`."""
    if form != SHARED_STORE and broker.kind == "atalanta":
        return IN_SYNC in active.process.tail(1000)
    return any(word in broker.process.tail(200) for word in PASSIVE_WORDS[form])
