"""CPU and memory of processes, from /proc."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from bench.generators import Counts, Generator

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pids: list[int]) -> float:
    """User and system time of the processes, all threads, since their start."""
    return sum(_ticks(Path(f"/proc/{pid}/stat").read_text()) for pid in pids) / TICKS


def _ticks(stat: str) -> int:
    fields = stat[stat.rindex(")") + 2 :].split()  # from the third on; utime is the fourteenth
    return int(fields[11]) + int(fields[12])


def machine_cpu_seconds() -> float:
    """What all processes of the machine used since it started, stolen time included."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    idle, waiting = int(fields[3]), int(fields[4])
    return (sum(map(int, fields)) - idle - waiting) / TICKS


def rss_mib(pid: int) -> float:
    """Resident memory."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise ValueError(f"process {pid} has no VmRSS")


@dataclass(frozen=True)
class Sample:
    """One counted window. `messages` are those received, or confirmed where nobody consumes."""

    messages: int
    seconds: float
    broker_cpu: float
    client_cpu: float
    other_cpu: float  # neither broker nor generator: the neighbours
    p50_us: float
    p99_us: float

    @property
    def rate(self) -> float:
        """Messages a second."""
        return self.messages / self.seconds

    @property
    def per_cpu_second(self) -> float:
        """Messages for each second of CPU that the brokers used."""
        return self.messages / max(self.broker_cpu, 1 / TICKS)

    @property
    def cost_us(self) -> float:
        """CPU of the brokers for one message."""
        return self.broker_cpu / max(self.messages, 1) * 1e6


class BadRun(RuntimeError):
    """Something was lost, refused or out of order, or nothing moved: no figure comes of this run."""


def counted(generator: Generator, pids: list[int], warm_up: float, seconds: float) -> Sample:
    """Lets the load run `warm_up` seconds, then counts for `seconds`."""
    time.sleep(warm_up)
    first, usage = generator.count(), _usage(generator, pids)
    time.sleep(seconds)
    last, later = generator.count(), _usage(generator, pids)
    broker, client, machine = (b - a for a, b in zip(usage, later, strict=True))
    messages = _moved(first, last)
    if messages <= 0 or last.bad:
        raise BadRun(f"{messages} messages moved, {last.bad} errors")
    span = (last.at_ns - first.at_ns) / 1e9
    other = max(0.0, machine - broker - client)
    return Sample(messages, span, broker, client, other, last.p50_us, last.p99_us)


def _usage(generator: Generator, pids: list[int]) -> tuple[float, float, float]:
    return cpu_seconds(pids), cpu_seconds([generator.pid]), machine_cpu_seconds()


def _moved(first: Counts, last: Counts) -> int:
    received = last.received - first.received
    return received if last.received else last.confirmed - first.confirmed
