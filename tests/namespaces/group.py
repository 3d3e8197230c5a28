"""A replicated group with a machine for each member, and a load that tells who has delivered what, and when."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from atalanta.client import ClientError, Message, connect
from atalanta.runtime.ha.group.member_status import MemberStatus, read_status
from tests.app.group import Group
from tests.namespaces.network import Namespaces, until

NAMES = ("a", "b", "c")
CLIENT = "client"
MANAGER = "manager"
VOTER_PORT = 5791
# A message may reach the test so much later than the client's socket: the machine has other work.
LATE_S = 0.25
QUEUE = "orders"


@dataclass
class Delivery:
    """One message that a client got; `taken` is when the broker had confirmed its acknowledgement."""

    number: int
    node: str
    run: int  # of the connection
    at: float
    taken: float = float("inf")


class Load:
    """A sender on a machine of its own, and a client beside each member that takes what this member delivers."""

    def __init__(self, network: Namespaces, urls: dict[str, str]) -> None:
        self.confirmed: list[int] = []
        self.deliveries: list[Delivery] = []
        self.failures: list[BaseException] = []
        self._network = network
        self._urls = urls
        self._sending = True
        self._over = threading.Event()
        self._runs = 0
        servers = ",".join(urls.values())
        everywhere = f"({servers})?reconnectAttempts=-1&retryInterval=50&callTimeout=5000"
        self._threads = [threading.Thread(target=self._run, args=(CLIENT, self._send(everywhere)))]
        self._threads += [threading.Thread(target=self._run, args=(name, self._take(name))) for name in urls]
        for each in self._threads:
            each.start()

    def _run(self, name: str, work: object) -> None:
        try:
            self._network.enter(name)
            asyncio.run(work)  # type: ignore[arg-type]
        except BaseException as failure:  # told by `end`
            self.failures.append(failure)

    async def _send(self, url: str) -> None:
        number = 0
        async with connect(url) as connection:
            producer = await connection.producer(QUEUE)
            while self._sending:
                try:
                    await producer.send(Message(f"{number}", properties={"_AMQ_DUPL_ID": f"load/{number}"}))
                except ClientError:
                    await asyncio.sleep(0.05)  # the same again
                    continue
                self.confirmed.append(number)
                number += 1
                await asyncio.sleep(0.002)

    async def _take(self, name: str) -> None:
        """Connects only to the member beside it, again and again: most of the time it does not serve."""
        url = f"{self._urls[name]}?reconnectAttempts=0&blockOnAcknowledge=true&callTimeout=5000"
        while not self._over.is_set():
            try:
                async with connect(url) as connection:
                    self._runs += 1
                    await self._receive(name, self._runs, await connection.consumer(QUEUE))
            except (ClientError, OSError):
                await asyncio.sleep(0.05)

    async def _receive(self, name: str, run: int, consumer: object) -> None:
        while not self._over.is_set():
            message = await consumer.receive(0.2)  # type: ignore[attr-defined]
            if message is not None:
                delivery = Delivery(int(message.text), name, run, time.monotonic())
                self.deliveries.append(delivery)
                await message.acknowledge()
                delivery.taken = time.monotonic()

    def past(self, count: int) -> None:
        """Waits until `count` more messages are confirmed."""
        wanted = len(self.confirmed) + count
        until(f"{count} more are confirmed", lambda: len(self.confirmed) >= wanted or bool(self.failures))

    def end(self) -> None:
        """Ends the sending, and the clients when all that was confirmed has come."""
        self._sending = False
        self._threads[0].join(60)
        until("all has come", lambda: {each.number for each in self.deliveries} >= set(self.confirmed), 30)
        self.stop()
        assert not self.failures, self.failures

    def stop(self) -> None:
        self._sending = False
        self._over.set()
        for each in self._threads:
            each.join(60)

    def check(self) -> None:
        """Nothing came again after it was taken, and no two members have delivered at the same time."""
        taken: dict[int, float] = {}
        for each in self.deliveries:
            assert each.at < taken.get(each.number, float("inf")), f"{each} came again"
            taken[each.number] = min(each.taken, taken.get(each.number, float("inf")))
        spans: dict[int, tuple[float, float, str]] = {}
        for each in self.deliveries:
            first = spans.get(each.run, (each.at, 0.0, ""))[0]
            spans[each.run] = first, each.at, each.node
        ordered = sorted(spans.values())
        for (_, end, one), (begin, _, other) in zip(ordered, ordered[1:], strict=False):
            assert one == other or begin > end - LATE_S, f"{one} delivers {end - begin:.3f} s longer than {other} waits"


class GroupManager(Protocol):
    """The manager of a group, on machines of its own or beside the members."""

    @property
    def machines(self) -> tuple[str, ...]:
        """Returns the names of its machines."""

    def lines(self, network: Namespaces) -> str:
        """Returns the lines of [ha.manager]."""

    def start(self, network: Namespaces) -> None:
        """Starts its processes."""


class Voters:
    """The manager `quorum`: a voter beside each of three members."""

    machines: tuple[str, ...] = ()

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._password = folder / "password"
        self._password.write_text("a password of voters")

    def lines(self, network: Namespaces) -> str:
        voters = ",".join(f"{network.address(name)}:{VOTER_PORT}" for name in NAMES)
        return f'kind = "quorum"\nvoters = "{voters}"\npassword-file = "{self._password}"\n'

    def start(self, network: Namespaces) -> None:
        for name in NAMES:
            listen = f"{network.address(name)}:{VOTER_PORT}"
            words = ["--listen", listen, "--folder", str(self._folder / f"voter-{name}"), "--new"]
            words += ["--password-file", str(self._password)]
            network.start(name, self._folder / f"voter-{name}.log", "-m", "atalanta", "ha", "witness", *words)


class GroupNetwork:
    """`with GroupNetwork(folder) as group:` has `size` members in sync. Without a `manager` each of NAMES has a voter
    beside it."""

    def __init__(
        self, folder: Path, backup_policy: str = "", size: int = len(NAMES), manager: GroupManager | None = None
    ) -> None:
        self.names = NAMES[:size]
        self._manager = manager or Voters(folder)
        self.network = Namespaces([*self.names, CLIENT, *self._manager.machines])
        own = f"[ha]\nlease_ms = 1000\nfailback_after_s = 1\n[ha.manager]\n{self._manager.lines(self.network)}"
        self._group = Group(folder, backups=size - 1, backup_policy=backup_policy, own=own)
        self._processes: dict[str, subprocess.Popen[str]] = {}
        ports = [each.port for each in self._group.members]
        self.urls = {
            name: f"tcp://{self.network.address(name)}:{port}" for name, port in zip(self.names, ports, strict=True)
        }
        for each in self._group.members:
            text = re.sub(r"<manager>.*?</manager>", "", each.broker_xml.read_text(), flags=re.DOTALL)
            for name, port in zip(self.names, ports, strict=True):
                text = text.replace(f"127.0.0.1:{port}", f"{self.network.address(name)}:{port}")
            each.broker_xml.write_text(text)

    def __enter__(self) -> GroupNetwork:
        try:
            self.network.__enter__()
            self._manager.start(self.network)
            for name in self.names:
                self.start(name)
                until(f"{name} is there", lambda name=name: self.status(name) is not None)  # type: ignore[misc]
            self.until_synced()
        except BaseException:
            self.network.__exit__()
            raise
        return self

    def __exit__(self, *failure: object) -> None:
        self.network.__exit__(*failure)

    def start(self, name: str) -> None:
        """Starts the process of a member."""
        member = self._group.members[self.names.index(name)]
        words = ["-m", "atalanta", "run", str(member.broker_xml)]
        self._processes[name] = self.network.start(name, member.log_path, *words)

    def kill(self, name: str) -> None:
        """Kills the process of a member, with its broker."""
        process = self._processes[name]
        process.send_signal(signal.SIGKILL)
        process.wait(20)
        (self._group.members[self.names.index(name)].data / "journal" / "member-status.json").unlink(missing_ok=True)

    @contextlib.contextmanager
    def loaded(self) -> Iterator[Load]:
        """Yields a load, which goes on, ends and is checked behind the block. A failure shows the logs."""
        load = Load(self.network, self.urls)
        try:
            yield load
            load.past(20)
            load.end()
            load.check()
        except BaseException:
            print(self.log())
            raise
        finally:
            load.stop()

    def log(self) -> str:
        """Returns the ends of the logs of all members."""
        members = zip(self.names, self._group.members, strict=True)
        parts = [f"--- {name}\n{each.log()[-6000:]}" for name, each in members]
        return "\n".join(parts)

    def removals(self) -> int:
        """Returns how often a member was removed from the register."""
        return sum(each.log().count("replica_removed") for each in self._group.members)

    def status(self, name: str) -> MemberStatus | None:
        """Returns what a member says of itself; None before it has said anything."""
        return read_status(self._group.members[self.names.index(name)].data / "journal")

    def active(self) -> str:
        """Returns the member that serves, as the files of their status say; "" if there is not one."""
        found = [name for name in self.names if (state := self.status(name)) is not None and state.state == "active"]
        return found[0] if len(found) == 1 else ""

    def until_active(self) -> str:
        """Waits until one member serves, as the files tell, and returns it."""
        until("one member serves", lambda: self.active() != "")
        return self.active()

    def until_synced(self) -> None:
        """Waits until one member serves and all others are in sync."""

        def synced() -> bool:
            states = [self.status(name) for name in self.names]
            found = [each for each in states if each is not None]
            serving = [each for each in found if each.state == "active"]
            if len(found) != len(self.names) or len(serving) != 1 or len({each.epoch for each in found}) != 1:
                return False
            return sum(each.in_sync for each in serving[0].followers) == len(self.names) - 1

        try:
            until("all are in sync", synced)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{[self.status(name) for name in self.names]}\n{self.log()}") from None
