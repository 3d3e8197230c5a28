"""The content of a damaged block of the journal, as far as its records still decode, for the text of the error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from atalanta.kernel.journal import records
from atalanta.kernel.journal.message_record import decode_message_record, decode_plain_message
from atalanta.kernel.queue.spec import decode_queue_spec
from atalanta.message.encoding.buffer import DecodeError, Reader

# Message ids that are named for each queue.
NAMED_MAX: Final = 20


class RecordedQueueNames:
    """The names of the queues by id, as the records of a replay tell them."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}

    def on_record(self, lsn: int, kind: int, payload: bytes) -> None:
        """Implements Replay.on_record."""
        if kind == records.QUEUE:
            reader = Reader(payload)
            queue_id = int(reader.int64("queue.id"))
            self.names[queue_id] = decode_queue_spec(reader).name
        elif kind == records.BATCH:
            for member_kind, member in records.decode_batch(payload):
                if member_kind == records.QUEUE:
                    self.on_record(lsn, member_kind, member)


class DamagedRecords:
    """The messages and acknowledgements in some records, by queue id. One of the records has a changed bit at least, so
    each name may be wrong."""

    def __init__(self) -> None:
        self.messages: dict[int, list[int]] = {}
        self.acknowledgements: dict[int, int] = {}
        self.others: int = 0

    def add(self, kind: int, payload: bytes) -> None:
        """Adds a record."""
        try:
            self._add(kind, payload)
        except (DecodeError, ValueError):
            self.others += 1

    def _add(self, kind: int, payload: bytes) -> None:
        if kind == records.BATCH:
            for member_kind, member in records.decode_batch(payload):
                if member_kind != records.BATCH:
                    self.add(member_kind, member)
        elif kind == records.MESSAGE or kind == records.PLAIN_MESSAGE:
            plain = kind == records.PLAIN_MESSAGE
            stored = decode_plain_message(payload) if plain else decode_message_record(payload)
            for route in stored.routes:
                self.messages.setdefault(route.queue_id, []).append(int(stored.message.id))
        elif kind == records.ACKS:
            reader = Reader(payload)
            queue_id = int(reader.int64("acks.queue"))
            count = int(reader.count("acks.count", 8))
            self.acknowledgements[queue_id] = self.acknowledgements.get(queue_id, 0) + count
        else:
            self.others += 1

    def text(self, names: Mapping[int, str]) -> str:
        """Returns the contents as one line; `names` are those of the queues."""
        found: list[str] = []
        for queue_id in sorted(self.messages):
            ids = self.messages[queue_id]
            listed = ", ".join([str(each) for each in ids[:NAMED_MAX]])
            more = f" and {len(ids) - NAMED_MAX} more" if len(ids) > NAMED_MAX else ""
            word = "message" if len(ids) == 1 else "messages"
            found.append(f"{word} {listed}{more} of {names.get(queue_id, f'queue number {queue_id}')}")
        for queue_id in sorted(self.acknowledgements):
            name = names.get(queue_id, f"queue number {queue_id}")
            found.append(f"acknowledgements of {self.acknowledgements[queue_id]} messages of {name}")
        if self.others:
            found.append(f"{self.others} other records")
        return ", ".join(found)
