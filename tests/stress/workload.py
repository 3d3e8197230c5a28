"""A fixed load on one node, a book of what the node has confirmed, and the check that it is all there, once.

Plain, pipelined, transacted, large, paged and last-value messages, two subscriptions of one address, acknowledgements
that wait for their answer, XA branches of which some stay in doubt, and sends that repeat a duplicate id. Everything is
sent by one client in a fixed order.
"""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Final

from atalanta.client import ClientError, Connection, Message, ReceivedMessage, Xid, connect

OPTIONS: Final = "minLargeMessageSize=10000&blockOnAcknowledge=true&callTimeout=30000"
ROUNDS: Final = 4
# Queues of each address.
QUEUES: Final = {
    "plain": ("plain",), "piped": ("piped",), "moved": ("moved",), "large": ("large",), "paged": ("paged",),
    "values": ("values",), "branches": ("branches",), "news": ("news.a", "news.b"),
}  # fmt: skip
BRANCHES: Final = 1_000  # their numbers begin here
SIZES: Final = {"large": 40_000, "paged": 1_500}
# Events that no node logs, whatever its disk does.
BUGS: Final = ("node_bug", "lease_bug")

CORE: Final = """
    <journal-file-size>64K</journal-file-size>
    <journal-compact-min-files>2</journal-compact-min-files>
    <address-settings>
      <address-setting match="paged">
        <max-size-bytes>12K</max-size-bytes><page-size-bytes>8K</page-size-bytes>
        <address-full-policy>PAGE</address-full-policy>
      </address-setting>
    </address-settings>
    <addresses>{addresses}</addresses>
"""


def core_elements() -> str:
    """Returns the elements of <core> for the load."""
    lines = []
    for address, queues in QUEUES.items():
        kind = "anycast" if queues == (address,) else "multicast"
        last_value = ' last-value="true"' if address == "values" else ""
        inner = "".join(f'<queue name="{queue}"{last_value}/>' for queue in queues)
        lines.append(f'<address name="{address}"><{kind}>{inner}</{kind}></address>')
    return CORE.format(addresses="".join(lines))


@dataclass(eq=False)
class Entry:
    """One message of the load. `sent` and `taken` (by queue): False = asked, True = confirmed."""

    address: str
    number: int
    size: int
    key: str = ""
    sent: bool = False
    transaction: int = -1
    taken: dict[str, bool] = field(default_factory=dict)
    taken_by: int = -1  # the transaction that took it

    @property
    def name(self) -> str:
        return f"{self.address}-{self.number}"

    def message(self) -> Message:
        """Returns the message, always the same."""
        line = f"{self.name};".encode()
        body = (line * (self.size // len(line) + 1))[: self.size]
        properties = {"name": self.name, "_AMQ_LVQ_NAME": self.key} if self.key else {"name": self.name}
        duplicate_id = None if self.transaction >= 0 else self.name
        return Message(body, properties=properties, duplicate_id=duplicate_id)


class Workload:
    """The load and its book: `play` fails when the node ends, `check` asks a later node."""

    def __init__(self, rounds: int = ROUNDS) -> None:
        self.rounds = rounds
        self.entries: dict[str, Entry] = {}
        # Transactions and branches whose commit was asked for (False) or confirmed (True), and prepared branches.
        self.committed: dict[int, bool] = {}
        self.prepared: dict[int, bool] = {}
        self.finished = False
        self._numbers: Counter[str] = Counter()

    # --- the load ---------------------------------------------------------------------------------

    async def play(self, url: str) -> None:
        """Plays the whole load. Raises ClientError when the node has ended."""
        async with connected(url) as connection:
            for turn in range(self.rounds):
                await self._plain(connection, turn)
                await self._piped(connection)
                await self._transactions(connection)
                await self._branches(connection)
                await self._others(connection, turn)
            await self.take(connection, "large", 2)
            await self.take(connection, "paged", 12)
        self.finished = True

    def confirmed(self) -> int:
        """Returns how many answers the client has."""
        sends = sum(each.sent for each in self.entries.values())
        return sends + sum(sum(each.taken.values()) for each in self.entries.values())

    def _entry(self, address: str, key: str = "", transaction: int = -1) -> Entry:
        number = self._numbers[address] = self._numbers[address] + 1
        entry = Entry(address, number, SIZES.get(address, 300), key, transaction=transaction)
        self.entries[entry.name] = entry
        return entry

    async def _send(self, connection: Connection, address: str, count: int, keys: int = 0) -> None:
        producer = await connection.producer(address)
        for index in range(count):
            entry = self._entry(address, f"key-{index % keys}" if keys else "")
            await producer.send(entry.message())
            entry.sent = True
        await producer.close()

    async def _plain(self, connection: Connection, turn: int) -> None:
        await self._send(connection, "plain", 12)
        producer = await connection.producer("plain")
        for name in (f"plain-{12 * turn + 1}", f"plain-{12 * turn + 12}"):  # the broker has these
            await producer.send(self.entries[name].message())
        await producer.close()
        await self.take(connection, "plain", 4)

    async def _piped(self, connection: Connection) -> None:
        """Sends without waiting: one commit of the node has several of them."""
        producer = await connection.producer("piped")
        waiting = [self._entry("piped") for _ in range(40)]
        for entry in waiting:
            await producer.send_soon(entry.message())
        await producer.drain()
        for entry in waiting:
            entry.sent = True
        await self.take(connection, "piped", 25, acknowledge_all=True)

    async def _transactions(self, connection: Connection) -> None:
        """Moves messages: sends and acknowledgements that hold together."""
        for _ in range(3):
            number = len(self.committed)
            async with connection.transaction() as transaction:
                consumer = await transaction.consumer("plain", ack="individual")
                for _ in range(2):
                    entry = self._of(await consumer.receive(80))  # a pause of the node is up to 60 s
                    await entry[1].acknowledge()
                    entry[0].taken["plain"] = False
                    entry[0].taken_by = number
                for _ in range(3):
                    await transaction.send("moved", self._entry("moved", transaction=number).message())
                self.committed[number] = False
            self._commit(number)

    async def _branches(self, connection: Connection) -> None:
        """Prepares two branches, and commits one of them."""
        for commits in (True, False):
            number = BRANCHES + len(self.prepared)
            self.prepared[number] = False
            branch = connection.xa_resource.branch(xid_of(number))
            async with branch:
                for _ in range(2):
                    await branch.send("branches", self._entry("branches", transaction=number).message())
                await branch.prepare()
            self.prepared[number] = True
            if commits:
                self.committed[number] = False
                await connection.xa_resource.commit(xid_of(number))
                self._commit(number)

    def _commit(self, number: int) -> None:
        self.committed[number] = True
        for entry in self.entries.values():
            if entry.transaction == number:
                entry.sent = True
            if entry.taken_by == number:
                entry.taken["plain"] = True

    async def _others(self, connection: Connection, turn: int) -> None:
        await self._send(connection, "large", 2)
        await self._send(connection, "paged", 14)
        await self._send(connection, "values", 8, keys=3)
        await self._send(connection, "news", 5)
        await self.take(connection, "news.a", 2 + turn)
        await self.take(connection, "paged", 8)
        await self.take(connection, "large", 1)

    async def take(self, connection: Connection, queue: str, count: int, acknowledge_all: bool = False) -> None:
        """Consumes messages and waits for the answer to each acknowledgement, or to the last one for all."""
        async with await connection.consumer(queue, ack="cumulative" if acknowledge_all else "individual") as consumer:
            taken = []
            for index in range(count):
                entry, message = self._of(await consumer.receive(80))  # a pause of the node is up to 60 s
                entry.taken[queue] = False
                taken.append(entry)
                if not acknowledge_all or index == count - 1:
                    await message.acknowledge()
                    for each in taken:
                        each.taken[queue] = True

    def _of(self, message: ReceivedMessage | None) -> tuple[Entry, ReceivedMessage]:
        assert message is not None, "a confirmed message does not arrive"
        return self.entries[str(message.properties["name"])], message

    # --- the check --------------------------------------------------------------------------------

    async def check(self, url: str) -> None:
        """Reads all queues, sends everything again under its duplicate ids, reads again, and compares with the book."""
        async with connected(url) as connection:
            problems = await self._end_branches(connection)
            first = await self._read_all(connection)
            await self._repeat(connection)
            again = await self._read_all(connection)
        problems += self._problems(first, again)
        assert not problems, "\n".join(problems[:20])

    async def _end_branches(self, connection: Connection) -> list[str]:
        """Commits all prepared branches. Returns what is wrong with the list of them."""
        resource = connection.xa_resource
        found = [int(xid.global_transaction_id) for xid in await resource.recover()]
        problems = [f"branch {number} was committed, and is in doubt" for number in found if self.committed.get(number)]
        for number, sure in self.prepared.items():
            if sure and number not in self.committed and number not in found:
                problems.append(f"branch {number} is lost, it was prepared")
            if sure:
                self.committed[number] = True
        for number in found:
            await resource.commit(xid_of(number))
        return problems

    async def _read_all(self, connection: Connection) -> dict[str, list[str]]:
        return {queue: await self.read(connection, queue) for queues in QUEUES.values() for queue in queues}

    async def _repeat(self, connection: Connection) -> None:
        for address in QUEUES:
            producer = await connection.producer(address)
            for entry in self.entries.values():
                if entry.address == address and entry.transaction < 0:
                    await producer.send_soon(entry.message())
            await producer.drain()
            await producer.close()

    async def read(self, connection: Connection, queue: str) -> list[str]:
        """Empties a queue; returns the names in order. AssertionError for a changed body."""
        names: list[str] = []
        async with await connection.consumer(queue, ack="auto") as consumer:
            while (message := await consumer.receive(0)) is not None:
                name = str(message.properties["name"])
                assert name in self.entries, f"{queue}: nobody has sent {name}"
                expected = self.entries[name].message().body
                assert message.body == expected, f"{queue}: the body of {name} has changed"
                names.append(name)
        return names

    def _problems(self, first: dict[str, list[str]], again: dict[str, list[str]]) -> list[str]:
        found: list[str] = []
        for queue, names in first.items():
            counts = Counter(names + again[queue])
            found += [f"{queue}: {name} arrived {n} times" for name, n in counts.items() if n > 1]
            sure = [self.entries[name].number for name in names if self.entries[name].sent]
            if sure != sorted(sure) and queue != "values":
                found.append(f"{queue}: the order has changed: {sure}")
        for entry in self.entries.values():
            if not entry.key and entry.transaction < 0 and entry.taken_by < 0:
                for queue in QUEUES[entry.address]:
                    found += fate(entry, queue, entry.name in first[queue], entry.name in again[queue])
        return found + self._last_values(first["values"], again["values"]) + self._torn_transactions(first)

    def _last_values(self, first: list[str], again: list[str]) -> list[str]:
        """Each key has its last confirmed message, or the one behind it, whose answer is not known."""
        found = []
        there = {self.entries[name].key: name for name in first}
        if len(there) < len(first):
            found.append(f"values: several messages of one key: {first}")
        versions: dict[str, list[Entry]] = defaultdict(list)
        for entry in self.entries.values():
            if entry.key:
                versions[entry.key].append(entry)
        for key, entries in versions.items():
            sure = [each.name for each in entries if each.sent]
            last = there.get(key)
            if sure and last not in (sure[-1], entries[-1].name):
                found.append(f"values: {key} is {last} instead of {sure[-1]}")
        found += [f"values: {name} was stored again" for name in again if self.entries[name].sent]
        return found

    def _torn_transactions(self, arrived: dict[str, list[str]]) -> list[str]:
        parts: dict[int, list[bool]] = defaultdict(list)
        for entry in self.entries.values():
            if entry.transaction >= 0:
                parts[entry.transaction].append(entry.name in arrived[entry.address])
            if entry.taken_by >= 0:
                parts[entry.taken_by].append(entry.name not in arrived["plain"])
        return [
            f"transaction {number}: {there} (confirmed: {self.committed.get(number)})"
            for number, there in parts.items()
            if any(there) != all(there) or (self.committed.get(number) and not all(there))
        ]


def xid_of(number: int) -> Xid:
    """Returns the id of a branch."""
    return Xid(1, b"load", str(number).encode())


def fate(entry: Entry, queue: str, first: bool, again: bool) -> list[str]:
    """Returns what is wrong with a message that arrived first, or after everything was sent again, or never."""
    taken = entry.taken.get(queue)
    if taken and (first or again):
        return [f"{queue}: {entry.name} came back, its acknowledgement was confirmed"]
    if taken is None and entry.sent and not first:
        return [f"{queue}: {entry.name} is lost, it was confirmed"]
    if taken is None and not first and not again:
        return [f"{queue}: {entry.name} is lost, although it was sent again"]
    if entry.sent and again:
        return [f"{queue}: {entry.name} was stored again"]
    return []


@contextlib.asynccontextmanager
async def connected(url: str) -> AsyncIterator[Connection]:
    """Yields a connection. An error inside is not hidden by one of its close."""
    connection = await connect(f"{url}?{OPTIONS}")
    try:
        yield connection
    finally:
        with contextlib.suppress(ClientError):
            await connection.close()
