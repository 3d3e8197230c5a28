"""The real artemis-jakarta-client against one node."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.harness.jms import Jms, run_scenarios, scenario_names, until
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess

USUAL_TARGET = "atalanta"
pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]


@pytest.fixture(scope="session")
def results(node: BrokerProcess, target: str) -> dict[str, str]:
    """The outcome of every scenario, in one run of one JVM."""
    found, output = run_scenarios(node.url)
    Path(node.folder, "scenarios.log").write_text(output)
    assert found, output + node.tail()
    assert node.running, f"the {target} node ended:\n{node.tail()}"
    return found


@pytest.mark.parametrize("scenario", scenario_names())
def test_scenario(target: str, results: dict[str, str], scenario: str) -> None:
    assert scenario in results, "it did not run"
    assert results[scenario] == ""


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_restart_keeps_what_is_durable(target: str, brokers: Lineup, ending: str) -> None:
    node = brokers.single(target)
    node.start()
    before, output = run_scenarios(node.url, "--phase", "before", "--run", ending)
    assert before == dict.fromkeys(scenario_names("before"), ""), output
    getattr(node, ending)()
    node.start()
    after, output = run_scenarios(node.url, "--phase", "after", "--run", ending)
    assert after == dict.fromkeys(scenario_names("after"), ""), output
    node.stop()


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_connections_live_through_a_restart(
    target: str, brokers: Lineup, jms: Jms, ending: str
) -> None:
    node = brokers.single(target)
    node.start()
    options = "reconnectAttempts=-1&retryInterval=100&failoverAttempts=-1&callTimeout=3000"
    receiving = jms.open(f"r-{target}-{ending}", node, options)
    sending = jms.open(f"s-{target}-{ending}", node, options)
    consumer = jms.consumer(f"c-{target}-{ending}", receiving, "queue:kept", mode="client")
    producer = jms.producer(f"p-{target}-{ending}", sending, "queue:kept")
    jms.send(producer, range(0, 20), dup="d")
    assert jms.collect([consumer], 20) == [[str(n) for n in range(20)]]
    jms("acknowledge", consumer)
    jms.send(producer, range(20, 25), dup="d")
    getattr(node, ending)()
    node.start()
    jms.send(producer, range(25, 40), dup="d")
    seen = [text.rstrip("!") for text in jms.collect([consumer], 20)[0]]
    assert sorted(set(seen), key=int) == [str(n) for n in range(20, 40)]
    jms.close_all(sending, receiving)
    until("the queue has no consumer", lambda: jms.queue(node, "kept")[2] == 0)
    node.stop()
