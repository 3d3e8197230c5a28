"""What a broker from an `activemq.xml` costs that is alone, two builds in turns: `python -m bench.lone_start`.

The build that is installed (or that PYTHONPATH names), and that of BENCH_PEER_BUILD (the folder that holds its
package) if it is given. Each has a store of its own, and starts again and again after a kill: empty; with a journal
(--journal-mb, of messages of 16 KiB); with large messages; and with both on a file system without hard links, which is
played: `os.link` fails in the process. Figures of a start: wall clock, the CPU of the broker, memory, and what is
written while nobody is connected.

`power` is a start as after a loss of power, when it cannot be known that nobody else has the store (this build only).
`taken` is the first start of this build in the folder of the other one, `back` that of the other one when the epochs
were moved away. `stall` freezes the disk for 5 s under a load, on a loop device (root): the longest wait of a
confirmation, and whether the broker serves afterwards.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import atalanta
from atalanta.client import Message, blocking
from atalanta.runtime.ha.epoch_names import EPOCHS_NAME, epoch_name, epochs_of
from atalanta.runtime.ha.lease_file import LEASE_NAME, decode_record, encode_record, read_content
from bench.settings import read_settings
from tests.ports import free_port
from tests.stress.power import PowerDisk, why_not

HERE: Final = "this build"
PEER: Final = "the other one"
PACKAGES: Final = Path(atalanta.__file__).resolve().parents[1]  # the folder of the build that runs this
START_SECONDS: Final = 300.0
STALL_SECONDS: Final = 5.0
BODY_BYTES: Final = 16 << 10
LARGE_BYTES: Final = 110_000
UNCONFIRMED_MAX: Final = 1_000
MIB: Final = 1 << 20

FILE: Final = """<beans xmlns="http://www.springframework.org/schema/beans">
  <broker xmlns="http://activemq.apache.org/schema/core" brokerName="lone">
    <destinations><queue physicalName="load"/></destinations>
    <persistenceAdapter><kahaDB directory="{store}"/></persistenceAdapter>
    <systemUsage><systemUsage><memoryUsage><memoryUsage limit="8 gb"/></memoryUsage></systemUsage></systemUsage>
    <transportConnectors><transportConnector name="openwire" uri="tcp://127.0.0.1:{port}"/></transportConnectors>
  </broker>
</beans>
"""
# Imported by every process that has its folder on the path: a file system without hard links, and nothing else.
NO_LINKS: Final = """import errno, os
def link(*arguments, **options):
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))
os.link = link
"""


class NoStart(Exception):
    """A broker does not become ready; the text has the end of its log."""


class LoneBroker:
    """A broker of one build with a store of its own, started again and again."""

    def __init__(self, folder: Path, build: Path, store: Path | None = None) -> None:
        self.folder = folder
        self.build = build
        self.store = folder / "store" if store is None else store
        self.port = free_port()
        self._process: subprocess.Popen[str] | None = None
        conf = folder / "conf"
        conf.mkdir(parents=True)
        (conf / "activemq.xml").write_text(FILE.format(store=self.store, port=self.port))
        (folder / "no-links").mkdir()
        (folder / "no-links" / "sitecustomize.py").write_text(NO_LINKS)

    @property
    def process(self) -> subprocess.Popen[str]:
        assert self._process is not None
        return self._process

    def start(self, links: bool = True) -> float:
        """Returns the seconds until it is ready."""
        path = [str(self.build)] if links else [str(self.folder / "no-links"), str(self.build)]
        begin = time.monotonic()
        with (self.folder / "log").open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "atalanta", "run", "conf/activemq.xml"], cwd=self.folder, text=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path)}, stdout=subprocess.PIPE, stderr=log,
            )  # fmt: skip
        timer = threading.Timer(START_SECONDS, self._process.kill)
        timer.start()
        try:
            assert self._process.stdout is not None
            while "openwire=" not in (line := self._process.stdout.readline()):
                if not line:
                    raise NoStart((self.folder / "log").read_text()[-2_000:])
        finally:
            timer.cancel()
        return time.monotonic() - begin

    def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(60)
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None

    def fill(self, count: int, size: int) -> None:
        """Sends so many durable messages of that size."""
        body = os.urandom(size)
        with blocking.connect(f"tcp://127.0.0.1:{self.port}") as connection:
            producer = connection.producer("load", routing="anycast")
            for _ in range(count):
                producer.send_soon(Message(body))
                if producer.unconfirmed >= UNCONFIRMED_MAX:
                    producer.drain()
            producer.drain()

    def rss_mib(self) -> float:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024

    def cpu_seconds(self) -> float:
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def written(self) -> tuple[int, int]:
        """Returns the calls that have written something, and the bytes that went to the disk, since the start."""
        pairs = dict(line.split(": ") for line in Path(f"/proc/{self.process.pid}/io").read_text().splitlines())
        return int(pairs["syscw"]), int(pairs["write_bytes"])

    def lose_power(self) -> None:
        """Kills it; its last record is that of another start of the machine."""
        self.end()
        journal = self.store / "journal"
        mark = journal / EPOCHS_NAME / epoch_name(epochs_of(journal)[-1])
        record = decode_record(read_content(mark))
        assert record is not None
        (mark / LEASE_NAME).write_bytes(encode_record(replace(record, boot="before the loss of power")))


@dataclass
class Figures:
    """The figures by row and build, in the order in which they came."""

    found: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, row: str, build: str, value: float) -> None:
        self.found.setdefault(row, {}).setdefault(build, []).append(value)
        print(f"  {row}, {build}: {value:.3f}", flush=True)

    def table(self) -> str:
        lines = ["", f"| | {HERE} | {PEER} |", "|---|---|---|"]
        lines += [f"| {row} | {shown(each.get(HERE))} | {shown(each.get(PEER))} |" for row, each in self.found.items()]
        return "\n".join(lines)


def shown(values: list[float] | None) -> str:
    """Returns the median, the lowest and the highest one."""
    if not values:
        return ""
    return f"{statistics.median(values):.3f} ({min(values):.3f}–{max(values):.3f})"


def measure_starts(row: str, brokers: dict[str, LoneBroker], figures: Figures, plan: argparse.Namespace) -> None:
    """Kills and starts each build in turns. The first turn has the figures of an idle broker, too."""
    for repeat in range(plan.repeats):
        for build, broker in brokers.items():
            broker.end()
            figures.add(f"{row}: s to ready", build, broker.start())
            figures.add(f"{row}: CPU s to ready", build, broker.cpu_seconds())
            if repeat == 0:
                time.sleep(2)
                (calls, count), cpu = broker.written(), broker.cpu_seconds()
                time.sleep(plan.idle)
                figures.add(f"{row}: CPU s in {plan.idle} idle s", build, broker.cpu_seconds() - cpu)
                figures.add(f"{row}: MiB", build, broker.rss_mib())
                after = broker.written()
                figures.add(f"{row}: writing calls in {plan.idle} idle s", build, after[0] - calls)
                figures.add(f"{row}: bytes to the disk in {plan.idle} idle s", build, after[1] - count)
    for repeat in range(plan.repeats):
        for build, broker in brokers.items():
            broker.end()
            figures.add(f"{row}, no hard links: s to ready", build, broker.start(links=False))
            figures.add(f"{row}, no hard links: CPU s to ready", build, broker.cpu_seconds())
            if build == HERE and repeat == 0:
                for links, name in ((True, "power"), (False, "power, no hard links")):
                    time.sleep(2)  # before that, its record asks for the time of a start
                    broker.lose_power()
                    figures.add(f"{row}, {name}: s to ready", build, broker.start(links))


def measure_exchange(row: str, brokers: dict[str, LoneBroker], figures: Figures) -> None:
    """Lets this build start in the folder of the other one, and the other one again."""
    if PEER in brokers:
        peer = brokers[PEER]
        peer.end()
        peer.build, older = brokers[HERE].build, peer.build
        figures.add(f"{row}, taken: s to ready", HERE, peer.start())
        peer.end()
        shutil.rmtree(peer.store / "journal" / EPOCHS_NAME)
        peer.build = older
        figures.add(f"{row}, back: s to ready", PEER, peer.start())


def measure_stall(folder: Path, builds: dict[str, Path], figures: Figures) -> None:
    """Freezes the disk of a broker that is under load."""
    why = why_not(folder / "probe")
    if why:
        print(f"  stall: {why}", flush=True)
        return
    for build, sources in builds.items():
        disk = PowerDisk(folder / f"disk {len(build)}")
        broker = LoneBroker(folder / f"stall {len(build)}", sources, disk.folder / "store")
        try:
            broker.start()
            figures.add("stall: s, longest confirmation", build, longest_confirmation(broker, disk))
            served = broker.process.poll() is None and "epoch_lost" not in (broker.folder / "log").read_text()
            figures.add("stall: serves on (1)", build, served)
        finally:
            broker.end()
            disk.close()


def longest_confirmation(broker: LoneBroker, disk: PowerDisk) -> float:
    """Returns the longest time of a durable send, one after the other, before, in and after the stall."""
    longest, thaw = 0.0, threading.Timer(STALL_SECONDS, disk.thaw)
    with blocking.connect(f"tcp://127.0.0.1:{broker.port}?reconnectAttempts=-1") as connection:
        producer = connection.producer("load", routing="anycast")
        for number in range(300):
            if number == 100:
                disk.freeze()
                thaw.start()
            begin = time.monotonic()
            producer.send(Message(b"x" * 100))
            longest = max(longest, time.monotonic() - begin)
    thaw.join()
    return longest


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.lone_start")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--idle", type=int, default=10, help="seconds in which writes are counted")
    parser.add_argument("--journal-mb", type=int, default=1024)
    parser.add_argument("--large", type=int, default=10_000, help="large messages")
    parser.add_argument("--only", default="empty,journal,large,stall")
    plan = parser.parse_args()
    peer = read_settings().peer_build
    builds = {HERE: PACKAGES} if peer is None else {HERE: PACKAGES, PEER: peer}
    loads = {
        "empty": (0, 0),
        "journal": (plan.journal_mb * MIB // BODY_BYTES, BODY_BYTES),
        "large": (plan.large, LARGE_BYTES),
    }
    figures = Figures()
    with tempfile.TemporaryDirectory(prefix="lone-start-") as name:
        for row in plan.only.split(","):
            if row == "stall":
                measure_stall(Path(name), builds, figures)
                continue
            brokers = {each: LoneBroker(Path(name) / f"{row} {len(each)}", path) for each, path in builds.items()}
            try:
                for build, broker in brokers.items():
                    figures.add(f"{row}: s to ready, first start", build, broker.start())
                    broker.fill(*loads[row])
                measure_starts(row, brokers, figures, plan)
                measure_exchange(row, brokers, figures)
            finally:
                for broker in brokers.values():
                    broker.end()
                    shutil.rmtree(broker.folder)
    print(figures.table())
    return 0


if __name__ == "__main__":
    sys.exit(main())
