"""A data folder read without a node: the kernel's own recovery on a read-only disk."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from atalanta.cli.output.outcome import NOT_THERE, Refused
from atalanta.client import ClientError, MessageTooLarge, ReceivedMessage
from atalanta.client.message import inflate
from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.problems import ConfigError
from atalanta.ha.folder_lease import ACTIVE
from atalanta.kernel import ports
from atalanta.kernel.broker.broker import Broker
from atalanta.kernel.broker.recovery import Recovery
from atalanta.kernel.memory.large_body import next_crc
from atalanta.kernel.ports import BrokerPorts, Disk, Ids, LargeFiles, PageError, Timers, Trace
from atalanta.kernel.queue.paging.page import Page
from atalanta.kernel.queue.queue import Queue
from atalanta.kernel.queue.reference import Reference
from atalanta.kernel.security.security import Security
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.message.message import COMPRESSED
from atalanta.runtime.disk.data_folder import JOURNAL_NAME, NODE_ID_NAME, read_node_id
from atalanta.runtime.disk.folder_lock import DataFolderError, is_locked
from atalanta.runtime.disk.large_files import SUFFIX, sizes_of_files
from atalanta.runtime.ha.epoch_folders import Epochs
from atalanta.runtime.ha.epoch_names import has_epochs
from atalanta.runtime.ha.holder_lock import LOCKED, MISSING, look_at_lock
from atalanta.runtime.ha.lease_file import decode_record, read_content
from atalanta.runtime.process.exit_codes import BAD_CONFIGURATION, BAD_DATA
from atalanta.store.config import JournalConfig
from atalanta.store.errors import JournalDamaged
from atalanta.store.pages import NAME_PREFIX, PageFiles
from atalanta.store.recovery import JournalRecovery
from atalanta.store.recovery_report import RecoveryReport
from atalanta.store.segment import segment_number

PAGING_NAME = "paging"
LARGE_NAMES = ("large-messages", "largemessages")  # of `atalanta create`, and without the element in a broker.xml
SUBFOLDERS = ("", JOURNAL_NAME, "data", f"data/{JOURNAL_NAME}")
BODY_BYTES_MAX: Final = 180 << 20  # in base64 it is less than a line may have (cli/messages/source.py)


class ReadOnlyDisk(Disk):
    """The existing files, read-only. Repairs of a recovery are skipped: no file is created, written or deleted."""

    def __init__(self, folder: Path, pages: Path) -> None:
        self._folder = folder
        self._pages = pages

    def names(self) -> list[str]:
        folders = [self._folder] + ([self._pages] if self._pages.is_dir() else [])
        entries = [entry for folder in folders for entry in os.scandir(folder)]
        return sorted(entry.name for entry in entries if entry.is_file())

    def size(self, name: str) -> int:
        return self._path(name).stat().st_size

    def _path(self, name: str) -> Path:
        return (self._pages if name.startswith(NAME_PREFIX) else self._folder) / name

    def read(self, name: str, offset: int, size: int) -> bytes:
        with self._path(name).open("rb", buffering=0) as file:
            return os.pread(file.fileno(), size, offset)

    def create(self, name: str, size: int, head: bytes) -> None:
        return None

    def commit(self, name: str, offset: int, data: bytes, token: int, more: bytes = b"") -> None:
        return None

    def delete(self, name: str) -> None:
        return None

    def set_aside(self, name: str, spare_name: str) -> None:
        return None

    def reuse(self, spare_name: str, name: str, head: bytes) -> None:
        return None


class NoJournal(ports.JournalPort):
    """Drops the records that a recovery would append. Messages are never published here, so there is no `begin`."""

    def __init__(self, last: int) -> None:
        self.last = last
        self.durable = last

    def append(self, kind: int, payload: bytes) -> int:
        self.last += 1
        return self.last


class NoTimers(Timers):
    """Timers that never fire."""

    def set(self, key: str, at_ns: int) -> None:
        return None

    def cancel(self, key: str) -> None:
        return None


class FoundDamage(Trace):
    """Collects what a recovery reports about damaged files, as lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def event(self, name: str, fields: dict[str, object]) -> None:
        if name.endswith("_damaged"):
            self.lines.append(f"{name} {' '.join(f'{key}={fields[key]}' for key in fields)}")


class CountingReplay:
    """Passes records on and counts them by kind: (records, bytes)."""

    def __init__(self, recovery: Recovery) -> None:
        self.kinds: dict[int, tuple[int, int]] = {}
        self._recovery = recovery

    def on_record(self, lsn: int, kind: int, payload: bytes) -> None:
        count, size = self.kinds.get(kind, (0, 0))
        self.kinds[kind] = (count + 1, size + len(payload))
        self._recovery.on_record(lsn, kind, payload)


class FolderContents:
    """The contents of a folder. JournalDamaged, JournalForeign or DecodeError for bad data."""

    def __init__(self, folder: Path, while_running: bool) -> None:
        self.folder, pages, large = find_folders(folder)
        found = read_node_id(self.folder)
        if found is None and self.folder.name == JOURNAL_NAME:
            found = read_node_id(self.folder.parent)
        if found is None:
            raise Refused(f"{self.folder / NODE_ID_NAME} is missing", BAD_DATA)
        self.node_id = found
        pages /= str(found)
        large /= str(found)
        if has_epochs(self.folder):
            epoch = Epochs(self.folder, pages, large).latest()
            self.folder, pages, large = epoch.journal, epoch.pages, epoch.large
            self.running = is_held(epoch.mark)
        else:
            self.running = is_locked(self.folder) or is_locked(self.folder.parent)
        if self.running and not while_running:
            raise DataFolderError(
                f"{self.folder}: a node uses it; stop that node, or read all the same with --while-running"
            )
        config = JournalConfig(journal_id=found.bytes)
        self.disk = ReadOnlyDisk(self.folder, pages)
        self.files = PageFiles(self.disk, found.bytes)
        self.large = ReadOnlyLargeFiles(large)
        damage = FoundDamage()
        self.damaged: list[str] = damage.lines
        self.broker = Broker(
            BrokerConfig(),
            AddressSettingsRepository(),
            Security(enabled=False),
            BrokerPorts(NoJournal(1 << 62), NoTimers(), Ids(), damage, self.files, self.large),
            str(found),
        )
        recovery = Recovery(self.broker)
        counted = CountingReplay(recovery)
        reading = JournalRecovery(self.disk, config, counted)
        try:
            reading.read()
        except JournalDamaged as error:
            raise error.with_contents(recovery.described(error.records)) from error
        reading.state.report.check_first(recovery.first_segment)
        recovery.finish(time.time_ns())
        self.report: RecoveryReport = reading.state.report
        self.kinds = counted.kinds

    def queues(self) -> list[Queue]:
        """Returns the queues, sorted by name."""
        return [self.broker.queues[name] for name in sorted(self.broker.queues)]

    def queue(self, name: str) -> Queue:
        """Returns the queue by name or address::queue. Refused (66)."""
        address, _, plain = name.rpartition("::")
        queue = self.broker.queues.get(plain)
        if queue is None or (address and queue.spec.address != address):
            raise Refused(f"{self.folder}: there is no queue {name}", NOT_THERE)
        return queue

    def references(self, queue: Queue) -> Iterator[Reference]:
        """Iterates over the messages of a queue in order; page files are read one block at a time, scheduled
        messages are last. PageError."""
        yield from queue.live()
        if queue.paged is not None:
            paging = self.broker.paging
            sequence = queue.references[-1].sequence if queue.references else 0
            while outside := paging.after(queue, sequence):
                yield from outside
                sequence = outside[-1].sequence
            for damage in paging.reader.damaged.values():
                raise PageError(damage.why)
        for _, reference in self.broker.scheduled.of_queue(queue):
            if reference.sequence == 0:
                yield reference

    def messages(self, queue: Queue) -> Iterator[FolderMessage]:
        """Iterates over the messages of `references`, as clients see them."""
        for reference in self.references(queue):
            yield self.received(reference)

    def received(self, reference: Reference) -> FolderMessage:
        """Returns the message as clients see it; `delivery_count` is the number of deliveries so far."""
        return FolderMessage(reference, self.large.folder)

    def pages(self) -> list[Page]:
        """Returns all page files that the journal names."""
        return [self.broker.paging.pages[number] for number in sorted(self.broker.paging.pages)]


def find_folders(place: Path) -> tuple[Path, Path, Path]:
    """Finds the folders of the journal, the page files and large messages: from a broker.xml, or at the default paths.
    Refused (66)."""
    if place.is_file():
        try:
            configuration = read_broker_xml(place, dict(os.environ), alone=True)
        except ConfigError as error:
            raise Refused(str(error.problems[0]), BAD_CONFIGURATION) from error
        folder, pages = configuration.journal_folder, configuration.paging_folder
        if has_journal(folder) or has_epochs(folder):
            return folder, pages, configuration.large_messages_folder
        raise Refused(f"{folder}: there is no journal of atalanta in it", NOT_THERE)
    if not place.exists():
        raise Refused(f"{place}: there is no such folder or file", NOT_THERE)
    for below in SUBFOLDERS:
        folder = (place / below).resolve()
        if has_journal(folder) or has_epochs(folder):
            places = [folder.parent / name for name in LARGE_NAMES]
            large = next((found for found in places if found.is_dir()), places[0])
            return folder, folder.parent / PAGING_NAME, large
    raise Refused(f"{place}: there is no journal of atalanta in it", NOT_THERE)


def is_held(epoch: Path) -> bool:
    """Returns whether a process of the pair may be serving: it is locked, or cannot be locked and was not ended."""
    lock = look_at_lock(epoch)
    if lock == MISSING:
        record = decode_record(read_content(epoch))
        return record is not None and record.state == ACTIVE
    return lock == LOCKED


def has_journal(folder: Path) -> bool:
    return folder.is_dir() and any(segment_number(name) for name in os.listdir(folder))


class ReadOnlyLargeFiles(LargeFiles):
    """The existing files. What a recovery would create or delete is left as it is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def files(self) -> dict[int, int]:
        return sizes_of_files(self.folder) if self.folder.is_dir() else {}

    def create(self, file: int, will_sync: bool) -> None:
        return None

    def append(self, file: int, data: bytes) -> None:
        return None

    def sync(self, file: int) -> None:
        return None

    def rename(self, file: int, number: int) -> None:
        return None

    def delete(self, file: int) -> None:
        return None


class FolderMessage(ReceivedMessage):
    """A message of a data folder, as clients see it; `delivery_count` is the number of deliveries so far."""

    __slots__ = ("_folder", "_large")

    def __init__(self, reference: Reference, folder: Path) -> None:
        super().__init__(reference.message, reference.queue.name, delivery_count=reference.delivery_count)
        self._large = reference.message.large
        self._folder = folder

    @property
    def body(self) -> bytes:
        """Returns the body. Raises MessageTooLarge, or ClientError for a file that is not as it was written."""
        if self._large is None:
            return super().body
        if self._body is None:
            body = self.stored_body
            self._body = inflate(body, BODY_BYTES_MAX) if self._message.has_property(COMPRESSED) else body
        return self._body

    @property
    def stored_body(self) -> bytes:
        """Returns the body as its sender gave it to the broker. Raises as `body` does."""
        large = self._large
        if large is None:
            return super().stored_body
        if large.size > BODY_BYTES_MAX:
            raise MessageTooLarge(f"its body has {large.size:,} bytes, more than the {BODY_BYTES_MAX:,} of a line")
        path = self._folder / f"{large.file}{SUFFIX}"
        body = path.read_bytes()[: large.size]
        if len(body) != large.size or next_crc(0, body) != large.crc:
            raise ClientError(f"{path}: the body is damaged")
        return body

    @property
    def body_bytes(self) -> int:
        return super().body_bytes if self._large is None else self._large.size
