"""A node says at its start what is missing or damaged in its journal."""

from __future__ import annotations

import pytest

from atalanta.store.block import BLOCK_HEAD_SIZE, BLOCK_MAGIC
from atalanta.store.config import JournalConfig
from atalanta.store.errors import JournalDamaged
from atalanta.store.segment import segment_name
from atalanta.wire.core.packets.message import SendMessage
from tests.node.machine_rig import Machine
from tests.wire.core.server.server_rig import queue_request, text_message

SMALL = JournalConfig(bytes(16), segment_size_bytes=16384, compact_min_segments=2)


def filled(count: int, journal: JournalConfig | None = None) -> Machine:
    """A machine with messages in the queue orders."""
    machine = Machine(journal)
    machine.login(1)
    machine.send(1, queue_request("orders"))
    for number in range(count):
        message = text_message("orders", f"{number}" * 100)
        machine.send(1, SendMessage(message, requires_response=False, correlation=-1, sender_id=0))
        machine.work()
    return machine


def reborn(machine: Machine) -> list[str]:
    """Starts again; returns the events of the start about the journal."""
    machine.disk.crash()
    machine.calls.clear()
    machine.start()
    return [f"{name} {fields}" for name, fields in machine.trace.events if name.startswith("journal_")]


def segments(machine: Machine) -> list[str]:
    return [name for name in machine.disk.names() if name.startswith("journal-0")]


def test_a_torn_tail_is_told_with_its_file_and_size() -> None:
    machine = filled(3)
    name = segments(machine)[0]
    end = len(bytes(machine.disk.files[name]).rstrip(b"\0"))
    machine.disk.flip_bit(name, end - 1)
    cut, recovered = reborn(machine)
    assert cut.startswith("journal_tail_cut") and name in cut and "'bytes': " in cut
    assert recovered.startswith("journal_recovered")
    assert len(reborn(machine)) == 1


@pytest.mark.parametrize("place", ["head", "length", "body"])
def test_the_messages_of_a_damaged_block_are_named(place: str) -> None:
    machine = filled(3)
    name = segments(machine)[0]
    data = bytes(machine.disk.files[name])
    body = data.index(("1" * 100).encode("utf-16-le"))
    block = data.rindex(BLOCK_MAGIC, 0, body)
    offset = {"head": block + 5, "length": block + BLOCK_HEAD_SIZE, "body": body}[place]
    message_id = sorted(machine.node.broker.store.messages)[1]
    machine.disk.flip_bit(name, offset)
    named = "" if place == "length" else f"; the block had message {message_id} of orders"
    with pytest.raises(JournalDamaged, match=f"{name}, offset .* follows in {name}, offset [0-9]+{named}$"):
        reborn(machine)


def test_a_missing_first_segment_is_refused_by_name() -> None:
    machine = filled(100, SMALL)
    first, second = segments(machine)[:2]
    assert first == segment_name(1)
    assert len(reborn(machine)) == 1
    del machine.disk.files[first]
    with pytest.raises(JournalDamaged, match=f"{first}.*missing, but {second} is there"):
        reborn(machine)


def test_a_compacted_journal_knows_its_first_segment() -> None:
    machine = filled(100, SMALL)
    broker = machine.node.broker
    broker.mover.purge(broker.queues["orders"], "test")
    machine.work()
    while machine.node.journal.wants_compaction():
        machine.node.journal.compact_step(machine.now)
        machine.work()
    first = segments(machine)[0]
    assert first > segment_name(1)
    assert len(reborn(machine)) == 1
    machine.login(1)
    for _ in range(100):
        message = text_message("orders", "x" * 100)
        machine.send(1, SendMessage(message, requires_response=False, correlation=-1, sender_id=0))
        machine.work()
    first = segments(machine)[0]
    del machine.disk.files[first]
    with pytest.raises(JournalDamaged, match=first):
        reborn(machine)


def test_a_missing_last_segment_is_named() -> None:
    machine = filled(100, SMALL)
    machine.disk.crash()
    machine.calls.clear()
    for name in segments(machine)[2:]:
        del machine.disk.files[name]
    missing, recovered = reborn(machine)
    assert missing == f"journal_segment_missing {{'file': '{segment_name(3)}'}}"
