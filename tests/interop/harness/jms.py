"""The real JMS client: the scenario runner, and a client driven call by call."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable

from .java_program import JavaProgram, ProgramError
from .node import BrokerProcess
from .tools import JAVA_PROJECT, SMALL_JVM, class_path, java

SCENARIO_RUN_SECONDS = 900.0
USER = "admin"
PASSWORD = "admin"


def scenario_names(phase: str = "main") -> list[str]:
    """The names of the scenarios, read from their sources (so that collecting needs no Java)."""
    mark = "@Scenario" if phase == "main" else f'@Scenario(phase = "{phase}")'
    names = []
    for path in sorted(JAVA_PROJECT.rglob("*.java")):
        lines = path.read_text().splitlines()
        for line, following in zip(lines, lines[1:], strict=False):
            if line.strip() == mark:
                method = following.split("static void ", 1)[1].split("(", 1)[0]
                names.append(f"{path.stem.lower()}.{method}")
    return names


def run_scenarios(url: str, *options: str, classes: str | None = None) -> tuple[dict[str, str], str]:
    """Runs scenarios; returns what failed why ("" for passed) by name, and the whole output."""
    path = class_path() if classes is None else classes
    command = [java(), "-Xmx512M", *SMALL_JVM, "-cp", path, "atalanta.interop.Main"]
    done = subprocess.run(
        [*command, "--url", url, *options],
        capture_output=True,
        text=True,
        timeout=SCENARIO_RUN_SECONDS,
    )
    results = {}
    for line in done.stdout.splitlines():
        verdict, _, rest = line.partition(" ")
        if verdict == "PASS":
            results[rest] = ""
        elif verdict == "FAIL":
            name, _, why = rest.partition(": ")
            results[name] = why or "no reason given"
    return results, done.stdout + done.stderr


class JmsError(RuntimeError):
    """The JMS client threw; the message is its exception."""


class Jms(JavaProgram):
    """One JVM with the JMS client; every method is one call, errors are raised as JmsError."""

    def __init__(self) -> None:
        super().__init__("Driver")

    def __call__(self, *fields: object) -> list[str]:
        """One command line of Driver.java."""
        try:
            return self.tell(*fields)
        except ProgramError as error:
            raise JmsError(str(error)) from None

    def open(self, name: str, node: BrokerProcess, options: str = "", client_id: str = "") -> str:
        """Connects to `node` and stays there; with a name for the further calls."""
        url = node.url + (f"&{options}" if options else "")
        self("open", name, url, USER, PASSWORD, *([client_id] if client_id else []))
        return name

    def consumer(
        self, name: str, connection: str, source: str, selector: str = "-", mode: str = "auto"
    ) -> str:
        """A consumer (in a session of its own)."""
        self("consumer", name, connection, source, selector, mode)
        return name

    def producer(self, name: str, connection: str, target: str, mode: str = "auto") -> str:
        """A producer (in a session of its own)."""
        self("producer", name, connection, target, mode)
        return name

    def send(self, producer: str, numbers: range, **properties: object) -> None:
        """Sends the numbers as texts, each confirmed by the broker."""
        pairs = [f"{key}={value}" for key, value in properties.items()]
        self("send", producer, numbers.start, len(numbers), *pairs)

    def receive(self, consumer: str, most: int, timeout_ms: int = 500) -> list[str]:
        """The next texts, at most `most`, until nothing has come for `timeout_ms`."""
        return self("receive", consumer, most, timeout_ms)

    def collect(self, consumers: list[str], count: int, seconds: float = 20.0) -> list[list[str]]:
        """What each consumer gets until `count` messages have come in all, and a little longer.

        A text with "!" is a redelivery; it counts if the consumer has not had the message before.
        """
        got: list[list[str]] = [[] for _ in consumers]
        deadline = time.monotonic() + seconds
        while sum(map(_distinct, got)) < count and time.monotonic() < deadline:
            for texts, consumer in zip(got, consumers, strict=True):
                texts += self.receive(consumer, count, 100)
        for texts, consumer in zip(got, consumers, strict=True):
            texts += self.receive(consumer, count, 300)
        return got

    def close_all(self, *names: str) -> None:
        """Closes connections, consumers or producers."""
        for name in names:
            self("close", name)

    def create(
        self, node: BrokerProcess, address: str, queue: str, routing: str, selector: str = "-"
    ) -> None:
        """A durable queue, by the core API."""
        self("create", node.url, USER, PASSWORD, address, queue, routing, selector)

    def queue(self, node: BrokerProcess, name: str) -> tuple[bool, int, int]:
        """Whether it exists at the node, its messages, its consumers."""
        exists, messages, consumers = self("queue", node.url, USER, PASSWORD, name)
        return exists == "true", int(messages), int(consumers)

    def bindings(self, node: BrokerProcess, address: str) -> list[str]:
        """The queues of an address as the node knows them; remote ones end with a node id."""
        return self("bindings", node.url, USER, PASSWORD, address)

    def topology(self, node: BrokerProcess) -> dict[str, str]:
        """Node id -> host:port, as the node tells clients."""
        members = self("topology", node.url, USER, PASSWORD)
        return {key: value for key, _, value in (member.partition("=") for member in members)}


def _distinct(texts: list[str]) -> int:
    return len({text.rstrip("!") for text in texts})


def until(what: str, holds: Callable[[], bool], seconds: float = 20.0) -> None:
    """Waits for a condition; AssertionError when it does not come true."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.1)
