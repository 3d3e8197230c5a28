"""The check that a recovery from the journal gives the state in memory, to find errors before a crash shows them.

It runs only while no record waits for the disk. A restart at that moment must recover the same durable messages,
sequences, leases and duplicate ids.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from atalanta.kernel import Broker, Ids, Links, Timers, Trace, Wire
from atalanta.kernel.queue import Queue, everything, retained_of
from atalanta.node import Ports
from atalanta.sim.checks.ledger import Violation
from atalanta.sim.host import Host
from atalanta.sim.world.disk import SimDisk
from atalanta.sim.world.large_files import SimLargeFiles


class SilentTrace(Trace):
    """A trace without output for the recovered copy of a node."""

    def count(self, name: str, n: int = 1) -> None:
        return None

    def event(self, name: str, fields: dict[str, object]) -> None:
        return None


class NoIds(Ids):
    """Ids for the recovered copy, which never uses them."""

    def uuid(self) -> bytes:
        return bytes(16)


def never(delay_ns: int, call: Callable[[], None]) -> None:
    """Ignores a job of the copy's disk."""


def check_replay(host: Host) -> bool:
    """Raises Violation if a restart would change anything. Returns False if the journal is busy or the node is down."""
    node = host.node
    if node is None or not node.journal.idle() or host.disk.busy() or host.disk.failed:
        return False
    check_replay_of(host, host.name, host.disk, host.large)
    return True


def check_replay_of(host: Host, name: str, files: SimDisk, large: SimLargeFiles) -> None:
    """Raises Violation if a node on a copy of these files, of machine `name`, would differ from that of `host`.

    Everything must be durable. What is being written to the files is torn in the copy.
    """
    assert host.node is not None
    disk = SimDisk(never, random.Random(0))
    disk.inherit(files)
    ports = Ports(Wire(), disk, Timers(), Links(), NoIds(), SilentTrace())
    ports.large = SimLargeFiles(never, random.Random(0))
    ports.large.contents = {file: bytearray(data) for file, data in large.contents.items()}
    shadow = host.make_node(ports)
    shadow.recover(host.now())
    _compare(name, host.node.broker, shadow.broker)


def _compare(name: str, live: Broker, replayed: Broker) -> None:
    durable = [queue for queue in live.queues.values() if queue.durable]
    if sorted(queue.name for queue in durable) != sorted(replayed.queues):
        raise Violation(f"{name}: a restart would find the queues {sorted(replayed.queues)}")
    for queue in durable:
        _compare_queue(name, queue, replayed.queues[queue.name])
    if _waiting(live) != _waiting(replayed):
        raise Violation(f"{name}: a restart would know other scheduled messages")
    for cache_name, cache in live.caches.by_name.items():
        known = replayed.caches.by_name.get(cache_name)
        for duplicate_id in cache.ids:
            if known is None or duplicate_id not in known.ids:
                raise Violation(
                    f"{name}: a restart would forget the duplicate id {duplicate_id!r} of {cache_name}"
                )


def _waiting(broker: Broker) -> list[tuple[int, int, int]]:
    """Returns (ms, message id, queue id) of messages sent for later; redeliveries are among the references."""
    return sorted(
        (entry[0], int(reference.message.id), reference.queue.id)
        for reference, entry in broker.scheduled.waiting.items()
        if reference.durable and reference.sequence == 0
    )


def _retained(queue: Queue) -> tuple[bytes, list[int]]:
    """Returns the limits and ranges of the queue's retention, and the sequences of its retained messages."""
    retained = retained_of(queue)
    return (b"", []) if retained is None else (retained.encode(), retained.sequences())


def _compare_queue(name: str, live: Queue, replayed: Queue) -> None:
    prefix = f"{name}, queue {live.name}: a restart would"
    after = {reference.sequence: reference for reference in everything(replayed)}
    for reference in everything(live):
        if not reference.durable:
            continue
        found = after.pop(reference.sequence, None)
        key = str(reference.message.properties.get("key"))
        if found is None or found.message.id != reference.message.id:
            raise Violation(f"{prefix} lose {key} (sequence {reference.sequence})", key)
        if found.route_to != reference.route_to or found.message.body != reference.message.body:
            raise Violation(f"{prefix} change {key} (sequence {reference.sequence})", key)
    for sequence, reference in after.items():
        key = str(reference.message.properties.get("key"))
        raise Violation(f"{prefix} bring {key} back (sequence {sequence})", key)
    if replayed.next_sequence <= live.durable_through:
        raise Violation(
            f"{prefix} give sequence {replayed.next_sequence} again, {live.durable_through} was used"
        )
    if (replayed.log.acked_through, replayed.incarnation) != (live.log.acked_through, live.incarnation):
        raise Violation(f"{prefix} know another incarnation or acknowledged sequence")
    epochs = {group: lease.epoch for group, lease in live.log.leases.items()}
    if epochs != {group: lease.epoch for group, lease in replayed.log.leases.items()}:
        raise Violation(f"{prefix} know other lease epochs than {epochs}")
    if _retained(live) != _retained(replayed):
        raise Violation(f"{prefix} retain {_retained(replayed)}, not {_retained(live)}")
    if live.log.lost != replayed.log.lost:
        raise Violation(f"{prefix} know other lost ranges than {live.log.lost}")
