"""`atalanta drain`, and a stop with <scale-down>: real processes, what they say, and how they end."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from atalanta.cli.admin.queues import asked
from tests.broker_process import BrokerProcess
from tests.broker_xml import cluster, write_broker_xml
from tests.cli.calls import Cli
from tests.ports import free_port
from tests.waiting import DEADLINE_S, until

pytestmark = pytest.mark.process

SCALE_DOWN = "<ha-policy><primary-only><scale-down/></primary-only></ha-policy>"
ONE_BY_ONE = SCALE_DOWN.replace(
    "<scale-down/>", "<scale-down><commit-interval>1</commit-interval></scale-down>"
)


TO_THE_SECOND = ONE_BY_ONE.replace(
    "<commit", "<connectors><connector-ref>to{second}</connector-ref></connectors><commit"
)


class Pair:
    """Two nodes, or more; `policy` is that of the first. Each but the last knows the next one."""

    def __init__(self, folder: Path, policy: str, count: int = 2) -> None:
        ports = [free_port() for _ in range(count)]
        self.urls = [f"tcp://127.0.0.1:{port}" for port in ports]
        self.nodes: list[BrokerProcess] = []
        for index, own in enumerate(ports):
            other = ports[index + 1] if index + 1 < count else ports[index - 1]
            more = cluster(own, [other]) + ("" if index else policy.format(second=other))
            timeout_ms = 60_000 if "commit-interval" in policy else 5_000
            toml = f"scale-down-timeout = {timeout_ms}\n"
            path = write_broker_xml(folder / f"n{index}", own, f"n{index}", more, own=toml)
            self.nodes.append(BrokerProcess(path))

    def formed(self) -> None:
        until(lambda: self.members() == len(self.nodes), self.nodes[0].log)

    def members(self) -> int:
        text = asked(
            (self.urls[0], None, None),
            lambda management: management.call("broker", "listNetworkTopology"),
        )
        return len(json.loads(str(text)))

    def fill(self, count: int) -> None:
        Cli(self.urls[0])("produce", "queue://work", "--count", str(count), "--text", "x", "-q")

    def waiting(self, index: int) -> int:
        rows = json.loads(Cli(self.urls[index])("queue", "stat", "work", "--json"))
        return sum(row["messageCount"] for row in rows)

    def kill_midway(self) -> None:
        """The first leaves to the second, which has begun to take what it has."""
        first, second = self.nodes[:2]
        ask = (self.urls[0], None, None)
        asked(ask, lambda management: management.call("broker", "scaleDown", None))
        end = time.monotonic() + DEADLINE_S
        while "member_left" not in second.log():
            assert time.monotonic() < end, first.log()
        # Nothing more is answered: the other is in the middle of it.
        second.process.send_signal(signal.SIGSTOP)
        first.end(signal.SIGKILL)
        second.process.send_signal(signal.SIGCONT)

    def go_on(self) -> None:
        """The first is started again, and leaves."""
        first = self.nodes[0]
        first.start()
        assert first.wait() == 0, first.log()
        assert "scale_down_resumed" in first.log()


@pytest.fixture
def pair(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Pair]:
    made = Pair(tmp_path, getattr(request, "param", ""))
    with ExitStack() as stack:
        for node in made.nodes:
            stack.enter_context(node)
        made.formed()
        yield made


def test_a_drained_node_ends_and_the_other_has_everything(pair: Pair) -> None:
    pair.fill(3_000)
    cli = Cli()
    said = json.loads(cli("drain", pair.urls[0].removeprefix("tcp://"), "--json"))
    assert (said["phase"], said["moved"], said["left"]) == ("done", 3_000, 0)
    assert pair.nodes[0].wait() == 0
    assert pair.waiting(1) == 3_000
    # There is nobody left to drain the second one to: it goes on.
    cli("drain", pair.urls[1], status=1)
    assert "no member can take the messages" in cli.errors
    assert pair.waiting(1) == 3_000
    cli("drain", pair.urls[1], "--to", "nowhere", status=1)
    assert "no connector 'nowhere'" in cli.errors


@pytest.mark.parametrize("pair", [SCALE_DOWN], indirect=True)
def test_a_stop_with_scale_down_moves_everything_and_without_a_target_says_what_is_left(
    pair: Pair,
) -> None:
    pair.fill(500)
    first, second = pair.nodes
    assert first.end(signal.SIGTERM) == 0
    assert pair.waiting(1) == 500
    assert "scale_down_ended" in first.log()
    # It comes back, gets messages, and finds nobody: they stay, and its status says so.
    first.start()
    first.wait_ready()
    assert second.end(signal.SIGTERM) == 0
    pair.fill(5)
    assert first.end(signal.SIGTERM) == 3
    assert "scale_down_left queue=work messages=5" in first.log()
    first.start()
    first.wait_ready()
    assert pair.waiting(0) == 5


@pytest.mark.parametrize("pair", [ONE_BY_ONE], indirect=True)
def test_a_node_that_is_killed_while_it_leaves_goes_on_when_it_is_started(pair: Pair) -> None:
    pair.fill(100)
    pair.kill_midway()
    pair.go_on()
    assert pair.waiting(1) == 100


def test_a_killed_node_whose_target_has_left_says_what_to_do_and_goes_on_when_that_is_back(
    tmp_path: Path,
) -> None:
    three = Pair(tmp_path, TO_THE_SECOND, 3)
    with ExitStack() as stack:
        for node in three.nodes:
            stack.enter_context(node)
        three.formed()
        three.fill(100)
        three.kill_midway()
        said = json.loads(Cli()("drain", three.urls[1].removeprefix("tcp://"), "--json"))
        assert (said["phase"], said["left"]) == ("done", 0)
        first, second = three.nodes[:2]
        assert second.wait() == 0
        settings = next((tmp_path / "n0").rglob("atalanta.toml"))
        long = settings.read_text()
        settings.write_text("scale-down-timeout = 1500\n")
        first.start()
        assert first.wait() == 3, first.log()
        assert f"the target 127.0.0.1:{three.urls[1].rsplit(':', 1)[1]} (" in first.log()
        assert "start it and this node again" in first.log()
        settings.write_text(long)
        second.start()
        second.wait_ready()
        three.go_on()
        assert three.waiting(1) + three.waiting(2) == 100


def test_of_a_broker_that_cannot_do_it_the_reason_is_said(tmp_path: Path) -> None:
    port = free_port()
    with BrokerProcess(write_broker_xml(tmp_path, port)):
        cli = Cli()
        cli("drain", f"127.0.0.1:{port}", status=1)
        assert "no cluster-connection" in cli.errors
    cli("drain", f"127.0.0.1:{port}", status=69)
    assert "connection refused" in cli.errors
