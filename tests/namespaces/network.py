"""Network namespaces on one bridge: machines with addresses of their own, whose cables can be pulled."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PORT = 61616
NOBODY = "02:00:00:00:00:99"  # an Ethernet address that no machine has
CLONE_NEWNET = 0x40000000  # of Linux' sched.h


def ip(*words: str) -> None:
    """`ip …`; CalledProcessError with what it said."""
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def possible() -> bool:
    """Whether this process may make namespaces."""
    if os.geteuid() != 0:
        return False
    name = f"atalanta-probe-{os.getpid()}"
    try:
        subprocess.run(["tc", "-Version"], check=True, capture_output=True)
        ip("netns", "add", name)
        try:
            subprocess.run(["nsenter", f"--net=/run/netns/{name}", "true"], check=True, capture_output=True)
        finally:
            ip("netns", "delete", name)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


NEEDS_NAMESPACES = pytest.mark.skipif(not possible(), reason="needs root, ip netns, tc and nsenter")

# What tests with namespaces are marked with.
MARKS = [
    pytest.mark.process,
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.environ.get("ATALANTA_SOAK") != "1", reason="make soak runs it"),
    NEEDS_NAMESPACES,
]


class Namespaces:
    """`names` get 10.77.0.1, 10.77.0.2 …; all is gone at the end of the block."""

    def __init__(self, names: list[str]) -> None:
        self.prefix = f"at{os.getpid() % 100_000}"
        self.names = names
        self.processes: list[subprocess.Popen[str]] = []
        self._with_queues: list[str] = []

    def __enter__(self) -> Namespaces:
        ip("netns", "add", self.space("hub"))
        self.inside("hub", "ip", "link", "add", "hub", "type", "bridge")
        self.inside("hub", "ip", "link", "set", "hub", "up")
        for index, name in enumerate(self.names):
            ip("netns", "add", self.space(name))
            near, far = "e0", f"p{index}"
            ip("link", "add", near, "netns", self.space(name), "type", "veth", "peer", "name", far, "netns",
               self.space("hub"))  # fmt: skip
            self.inside("hub", "ip", "link", "set", far, "master", "hub", "up")
            self.inside(name, "ip", "address", "add", f"{self.address(name)}/24", "dev", near)
            for device in ("lo", near):
                self.inside(name, "ip", "link", "set", device, "up")
            self.inside(name, "ip", "route", "add", "224.0.0.0/4", "dev", near)
        return self

    def __exit__(self, *failure: object) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        for name in [*self.names, "hub"]:
            subprocess.run(["ip", "netns", "delete", self.space(name)], capture_output=True, check=False)

    def space(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    def address(self, name: str) -> str:
        return f"10.77.0.{self.names.index(name) + 1}"

    def url(self, name: str) -> str:
        """Of a client that stays at that node and comes back to it."""
        return f"tcp://{self.address(name)}:{PORT}?reconnectAttempts=-1&retryInterval=200&stay=true&callTimeout=60000"

    def _at(self, name: str) -> list[str]:
        """Begins a command there. `ip netns exec` would make a namespace for mounts, too, that keeps the disks of other
        tests mounted.
        """
        return ["nsenter", f"--net=/run/netns/{self.space(name)}"]

    def inside(self, name: str, *words: str) -> str:
        """Runs a command there; its output."""
        done = subprocess.run(
            [*self._at(name), *words], check=True, capture_output=True, text=True
        )
        return done.stdout

    # -- programs -------------------------------------------------------------------------------
    def start(
        self, name: str, log: Path, *words: str, program: str = sys.executable
    ) -> subprocess.Popen[str]:
        """A program there that goes on."""
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        with log.open("a") as stderr:
            process = subprocess.Popen(
                [*self._at(name), program, *words],
                stdout=subprocess.PIPE, stderr=stderr, stdin=subprocess.DEVNULL, text=True, env=environment,
                cwd=ROOT,
            )  # fmt: skip
        self.processes.append(process)
        return process

    def client(self, name: str, *words: object) -> Client:
        """The driver there, running."""
        return Client(self, name, [str(word) for word in words])

    # -- cables ---------------------------------------------------------------------------------
    def pull(self, name: str) -> None:
        """The cable of that machine; connections notice by silence only."""
        self.inside("hub", "ip", "link", "set", f"p{self.names.index(name)}", "down")

    def plug(self, name: str) -> None:
        self.inside("hub", "ip", "link", "set", f"p{self.names.index(name)}", "up")

    def drop(self, source: str, target: str) -> None:
        """What `source` sends to `target` gets lost; the other way works."""
        self.inside(source, "ip", "route", "add", "blackhole", f"{self.address(target)}/32")

    def restore(self, source: str, target: str) -> None:
        self.inside(source, "ip", "route", "delete", "blackhole", f"{self.address(target)}/32")

    def lose(self, source: str, target: str) -> None:
        """Drops the packets from `source` to `target` without an error; the other way works."""
        self.inside(source, "ip", "neigh", "replace", self.address(target), "lladdr", NOBODY, "dev", "e0", "nud",
                    "permanent")  # fmt: skip

    def carry(self, source: str, target: str) -> None:
        self.inside(source, "ip", "neigh", "delete", self.address(target), "dev", "e0")

    def lose_sizes(self, source: str, target: str, sizes: tuple[tuple[int, int], ...]) -> None:
        """Drops the packets from `source` to `target` whose length in bytes is one of `sizes`: pairs of a value and a
        mask, which says what bits of the length must be as in the value.
        """
        self._make_queues(source)
        for value, mask in sizes:
            # The total length is the second word of the IP header.
            where = f"match ip dst {self.address(target)}/32 match u16 {value} {mask:#06x} at 2"
            self._tc(source, f"filter add {self._filters(target)} u32 {where} flowid 1:9")

    def slow(self, source: str, target: str, rate: str) -> None:
        """Lets packets from `source` to `target` leave at a rate, such as "64kbit"; what is more waits, or is dropped.
        """
        self._make_queues(source)
        self._tc(source, f"class add dev e0 parent 1: classid {self._class(target)} htb rate {rate}")
        where = f"match ip dst {self.address(target)}/32"
        self._tc(source, f"filter add {self._filters(target)} u32 {where} flowid {self._class(target)}")

    def slow_no_more(self, source: str, target: str) -> None:
        """Ends `slow`. What waits is dropped."""
        self.carry_sizes(source, target)
        self._tc(source, f"class delete dev e0 classid {self._class(target)}")

    def _class(self, target: str) -> str:
        return f"1:{self.names.index(target) + 10}"

    def _make_queues(self, source: str) -> None:
        """Makes the queue of a machine, in which packets of class 1:9 are dropped."""
        if source not in self._with_queues:
            self._with_queues.append(source)
            self._tc(source, "qdisc add dev e0 root handle 1: htb")
            self._tc(source, "class add dev e0 parent 1: classid 1:9 htb rate 1gbit")
            self._tc(source, "qdisc add dev e0 parent 1:9 pfifo limit 0")

    def carry_sizes(self, source: str, target: str) -> None:
        self._tc(source, f"filter delete {self._filters(target)}")

    def _filters(self, target: str) -> str:
        return f"dev e0 parent 1: protocol ip pref {self.names.index(target) + 1}"

    def _tc(self, name: str, words: str) -> None:
        self.inside(name, "tc", *words.split())

    def reset(self, source: str, target: str) -> None:
        """Answers the packets from `source` to `target` with a reset: the address seems to be its own."""
        self.inside(source, "ip", "route", "add", "local", f"{self.address(target)}/32", "dev", "lo", "src",
                    self.address(source))  # fmt: skip

    def reset_no_more(self, source: str, target: str) -> None:
        self.inside(source, "ip", "route", "delete", "local", f"{self.address(target)}/32", "dev", "lo")

    def enter(self, name: str) -> None:
        """Moves the calling thread there: the sockets that it makes are of that machine."""
        with Path("/run/netns", self.space(name)).open("rb") as namespace:
            if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")


class Client:
    """One run of driver.py; `result` waits for it."""

    def __init__(self, network: Namespaces, name: str, words: list[str]) -> None:
        self.process = network.start(
            name, Path(os.devnull), "-m", "tests.namespaces.driver", *words
        )

    def result(self, seconds: float = 120) -> Any:
        """What it printed."""
        out, _ = self.process.communicate(timeout=seconds)
        assert self.process.returncode == 0, f"the client ended with {self.process.returncode}"
        return json.loads(out)


def until(what: str, holds: Callable[[], bool], seconds: float = 60) -> None:
    """AssertionError when it does not come true in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.3)
