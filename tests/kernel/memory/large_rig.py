"""A broker with files of large messages in memory."""

from __future__ import annotations

import random
from collections.abc import Callable

from atalanta.kernel.broker import invariants
from atalanta.kernel.endpoint import SILENT
from atalanta.kernel.memory.large_body import LargeWriter
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.settings.repository import AddressSettingsRepository, SettingValue
from atalanta.sim.world.large_files import LargeInputs, SimLargeFiles
from tests.kernel.broker_rig import Bench


class SilentWriter(LargeWriter):
    """A sender that ignores the answers: the files of these tests are written and synced when the bench says so."""

    def written(self, now: int) -> None:
        return None

    def synced(self, now: int) -> None:
        return None

    def failed(self, now: int, why: str) -> None:
        return None


class LargeBench(Bench, LargeInputs):
    """A bench with a folder for large messages; `settle` works its jobs off."""

    def __init__(self, values: dict[str, SettingValue] | None = None) -> None:
        self.jobs: list[Callable[[], None]] = []
        self.folder = SimLargeFiles(lambda _, call: self.jobs.append(call), random.Random(1))
        settings = AddressSettingsRepository()
        settings.add("#", values or {})
        super().__init__(BrokerConfig(), settings, paging=True, large=self.folder)
        self.folder.attach(self)
        self.trace.on = False
        self.queue("orders")

    def settle(self) -> None:
        super().settle()
        while self.jobs:
            self.jobs.pop(0)()
            super().settle()
        invariants.validate(self.broker)

    def large_written(self, file: int, size: int) -> None:
        self.broker.large.on_written(self.now, file, size)

    def large_synced(self, file: int) -> None:
        self.broker.large.on_synced(self.now, file)

    def large_failed(self, file: int, why: str) -> None:
        self.broker.large.on_failed(self.now, file, why)

    def publish(
        self, address: str, size: int = 1_000, durable: bool = True, head: int = 0, synced: bool = True
    ) -> int:
        """A large message whose file is safe if `synced`; `head` bytes of properties make it heavy in memory. Its file.
        """
        broker = self.broker
        body = broker.large.create(broker.store.take_message_id(), durable, SilentWriter())
        broker.large.append(body, b"\x01" * size)
        if synced:
            broker.large.sync(body)
        while self.jobs:
            self.jobs.pop(0)()
        body.writer = None
        message = self.message(address, b"", durable, text="x" * head)
        message.large = body
        broker.publisher.publish(self.now, message, None, SILENT)
        broker.large.release(body)
        return body.file

    def power_cut(self) -> None:
        self.jobs.clear()
        self.folder.crash()
        self.restart()
        self.settle()


def fill(bench: LargeBench, count: int, durable: bool = True, synced: bool = True) -> None:
    for _ in range(count):
        bench.publish("orders", durable=durable, head=1_000, synced=synced)
        bench.settle()
