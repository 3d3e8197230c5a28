"""A broker on a test bench: ports that record, a journal that becomes durable when told to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from librt.strings import BytesWriter

from atalanta.kernel.broker.broker import Broker
from atalanta.kernel.broker.live_records import LiveRecords
from atalanta.kernel.broker.notifications import Notifications
from atalanta.kernel.broker.recovery import Recovery
from atalanta.kernel.broker.reserved_ids import FoundIds
from atalanta.kernel.ports import (
    BrokerPorts,
    Ids,
    JournalPort,
    LargeFiles,
    PageError,
    Pages,
    Timers,
    Trace,
)
from atalanta.kernel.queue.spec import QueueSpec
from atalanta.kernel.security.security import Identity, Security
from atalanta.kernel.sessions.client import Client
from atalanta.kernel.sessions.request_wait import STEP_TIMER
from atalanta.kernel.sessions.session import Session
from atalanta.kernel.sessions.session_endpoint import SessionEndpoint
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.kernel.tasks import STEPS_A_TURN, TASKS_TIMER
from atalanta.message.message import Message

if TYPE_CHECKING:
    from atalanta.kernel.errors import BrokerError
    from atalanta.kernel.event_record import EventRecord
    from atalanta.kernel.queue.consumer import QueueConsumer
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.reference import Reference

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND


class MemoryJournal(JournalPort):
    """Records in a list; nothing is durable before the bench says so."""

    def __init__(self) -> None:
        self.records: list[tuple[int, int, bytes]] = []
        self.durable = 0
        self.last = 0
        self.kind = 0
        self.writer = BytesWriter()

    def append(self, kind: int, payload: bytes) -> int:
        self.last += 1
        self.records.append((self.last, kind, payload))
        return self.last

    def begin(self, kind: int) -> BytesWriter:
        self.kind = kind
        self.writer = BytesWriter()
        return self.writer

    def end(self) -> int:
        return self.append(self.kind, self.writer.getvalue())


class MemoryPages(Pages):
    """Page files in a dict; `reads` counts blocks."""

    def __init__(self) -> None:
        self.reads = 0
        self.files: dict[int, list[bytes]] = {}

    def write(self, number: int, blocks: list[bytes]) -> int:
        assert number not in self.files
        self.files[number] = blocks
        return sum(len(block) for block in blocks)

    def read(self, number: int, block: int) -> bytes:
        self.reads += 1
        if number not in self.files:
            raise PageError(f"page {number} is missing")
        return self.files[number][block]

    def settled(self, number: int) -> None:
        return None

    def delete(self, number: int) -> None:
        self.files.pop(number, None)  # an operator may have removed it

    def keep(self, number: int) -> None:
        self.files.pop(number, None)

    def numbers(self) -> list[int]:
        return sorted(self.files)


class RecordingTimers(Timers):
    def __init__(self) -> None:
        self.due: dict[str, int] = {}

    def set(self, key: str, at_ns: int) -> None:
        self.due[key] = at_ns

    def cancel(self, key: str) -> None:
        self.due.pop(key, None)


class CountingIds(Ids):
    def __init__(self) -> None:
        self.count = 0

    def uuid(self) -> bytes:
        self.count += 1
        return self.count.to_bytes(16, "big")

    def secret(self, size: int) -> bytes:
        return bytes(size)


class RecordingTrace(Trace):
    """Keeps everything. A command that fails by a mistake of ours fails the test, unless it `expects_failures`."""

    def __init__(self) -> None:
        self.expects_failures = False
        self.on = True
        self.counters: dict[str, int] = {}
        self.events: list[tuple[str, dict[str, object]]] = []
        self.kept: EventRecord | None = None  # what management tells

    def count(self, name: str, n: int = 1) -> None:
        self.counters[name] = self.counters.get(name, 0) + n

    def counts(self) -> dict[str, int]:
        return self.counters

    def event(self, name: str, fields: dict[str, object]) -> None:
        assert self.expects_failures or name != "command_failed", fields
        self.events.append((name, fields))

    def record(self) -> EventRecord | None:
        return self.kept


class RecordingEndpoint(SessionEndpoint):
    """Records what a client would see, in order."""

    def __init__(self) -> None:
        self.delivered: list[tuple[int, int, bytes]] = []
        self.answers: list[int] = []
        self.errors: list[tuple[int, int]] = []
        self.drained_tokens: list[int] = []
        self.gone: list[int] = []
        self.granted: list[tuple[str, int]] = []
        self.blocks: list[tuple[str, bool]] = []
        self.cuts: list[str] = []
        self.message_ids: list[int] = []
        self.marks: list[Message | None] = []
        self.held = 0

    def deliver(self, consumer: QueueConsumer, reference: Reference) -> int:
        self.delivered.append((consumer.id, reference.delivery_count, reference.message.body))
        self.message_ids.append(reference.message.id)
        self.marks.append(consumer.marked)
        return reference.message.size

    def bodies(self) -> list[bytes]:
        return [body for _, _, body in self.delivered]

    def drained(self, consumer: QueueConsumer, token: int) -> None:
        self.drained_tokens.append(token)

    def done(self, token: int) -> None:
        self.answers.append(token)

    def failed(self, token: int, error: BrokerError) -> None:
        self.errors.append((token, error.code))

    def consumer_gone(self, consumer: QueueConsumer, why: str) -> None:
        self.gone.append(consumer.id)

    def credits(self, address: str, amount: int) -> None:
        self.granted.append((address, amount))

    def refuse_credits(self, address: str, amount: int) -> None:
        self.granted.append((address, -amount))

    def cut_off(self, why: str) -> None:
        self.cuts.append(why)

    def blocked(self, address: str) -> None:
        self.blocks.append((address, True))

    def unblocked(self, address: str) -> None:
        self.blocks.append((address, False))

    def hold_input(self) -> None:
        self.held += 1

    def release_input(self) -> None:
        self.held -= 1


class Bench:
    """One broker; `restart` makes a new one from what was durable."""

    def __init__(
        self,
        config: BrokerConfig | None = None,
        settings: AddressSettingsRepository | None = None,
        paging: bool = False,
        large: LargeFiles | None = None,
    ) -> None:
        self.steps_a_turn = STEPS_A_TURN
        self.pages = MemoryPages() if paging else None
        self.large_files = large
        self.config = config or BrokerConfig()
        self.settings = settings or AddressSettingsRepository()
        self.now = START
        self.journal = MemoryJournal()
        self.timers = RecordingTimers()
        self.trace = RecordingTrace()
        self.ids = CountingIds()
        self.sessions = 0
        self.broker = self._broker()
        self.broker.set_now(self.now)
        self.broker.reserved_ids.begin(self.now, FoundIds(), 0)
        self._keep_marks()

    def _broker(self) -> Broker:
        security = Security(enabled=False)
        broker = Broker(
            self.config,
            self.settings,
            security,
            BrokerPorts(
                self.journal, self.timers, self.ids, self.trace, self.pages, self.large_files
            ),
            "node-a",
        )
        broker.store.tasks.most = self.steps_a_turn
        return broker

    def _keep_marks(self) -> None:
        """Nothing leaves a node before the marks of its ids are durable."""
        self.broker.reserved_ids.renew()
        self.journal.durable = self.journal.last

    def work_in_steps_of(self, steps: int) -> None:
        """Lets tasks do so many steps a turn, also after a restart."""
        self.steps_a_turn = steps
        self.broker.store.tasks.most = steps

    def queue(
        self,
        name: str,
        address: str | None = None,
        routing_type: int = 1,
        filter_text: str | None = None,
        durable: bool = True,
        **attributes: object,
    ) -> Queue:
        """`attributes` are fields of QueueSpec."""
        spec = QueueSpec(name, address or name, routing_type)
        for attribute, value in attributes.items():
            assert hasattr(spec, attribute)
            setattr(spec, attribute, value)
        spec.filter_text = filter_text
        spec.durable = durable
        return self.broker.queue_registry.create(self.now, spec)

    def session(self, transacted: bool = False) -> Session:
        self.sessions += 1
        client = Client(self.sessions, "test")
        name = f"session-{self.sessions}"
        session = Session(
            self.broker.session_services,
            client,
            name,
            RecordingEndpoint(),
            Identity("tester", (), False),
            not transacted,
            not transacted,
            False,
        )
        client.sessions[name] = session
        session.start()
        return session

    def message(
        self, address: str, body: bytes = b"", durable: bool = True, **properties: object
    ) -> Message:
        message = Message.create(address, body, 4, durable, self.now // 1_000_000, 4)
        for name, value in properties.items():
            message.properties.put(name, value)  # type: ignore[arg-type]
        message.properties_changed()
        return message

    def settle(self) -> None:
        """Everything appended becomes durable and is handed out, until nothing moves."""
        for _ in range(1_000):
            self.broker.flush(self.now)
            store = self.broker.store
            if store.tasks.waiting:
                self.timers.cancel(TASKS_TIMER)
                self.broker.on_timer(self.now, TASKS_TIMER)
            busy = self.broker.dispatches.dirty or self.broker.paging.touched or store.tasks.waiting or store.entering
            busy = self.step() or busy
            self.broker.flush_timer = False
            if self.journal.durable == self.journal.last and not busy:
                return
            self.journal.durable = self.journal.last
            self.broker.on_durable(self.now, self.journal.last)
        raise AssertionError("the broker does not come to rest")

    def turn(self) -> None:
        """One turn in which nothing comes in: tasks go on, and queues are dispatched."""
        if self.broker.store.tasks.waiting:
            self.broker.on_timer(self.now, TASKS_TIMER)
        self.broker.flush(self.now)

    def step(self) -> bool:
        """Does the next step of a large request; returns False if none waits."""
        if self.timers.due.pop(STEP_TIMER, None) is None:
            return False
        self.broker.on_timer(self.now, STEP_TIMER)
        return True

    def restart(self) -> None:
        """Crash: what was not durable is gone."""
        kept = [record for record in self.journal.records if record[0] <= self.journal.durable]
        self.journal = MemoryJournal()
        self.journal.records = kept
        self.journal.last = kept[-1][0] if kept else 0
        self.journal.durable = self.journal.last
        self.now += SECOND
        self.broker = self._broker()
        recovery = Recovery(self.broker)
        for lsn, kind, payload in kept:
            recovery.on_record(lsn, kind, payload)
        recovery.finish(self.now)
        self._keep_marks()

    def compact(self, through: int) -> None:
        """Clean the records up to lsn `through` away, as the store does with its oldest segment."""
        live_records = LiveRecords(self.broker)
        live_records.before_compaction(self.now, 2)
        for lsn, kind, payload in [
            record for record in self.journal.records if record[0] <= through
        ]:
            live_records.relocate(lsn, kind, payload)
        self.journal.durable = self.journal.last
        self.broker.on_durable(self.now, self.journal.last)
        self.journal.records = [record for record in self.journal.records if record[0] > through]


def notifications_of(broker: Broker) -> Notifications:
    return Notifications(
        broker.config,
        broker.node_id,
        broker.address_registry,
        broker.queue_registry,
        broker.plans,
    )


def endpoint(session: Session) -> RecordingEndpoint:
    assert isinstance(session.endpoint, RecordingEndpoint)
    return session.endpoint


def consume(
    session: Session,
    bench: Bench,
    queue: str,
    selector: str | None = None,
    credits: int = -1,
    consumer_id: int = 0,
    browse: bool = False,
) -> None:
    session.create_consumer(bench.now, consumer_id, queue, selector, browse, 0)
    session.add_credits(consumer_id, credits)
