"""JMS clients of Artemis 1.4 and 1.5 at a node: the same scenarios as for newer clients, beside these.

`--target artemis` asks a real Artemis 2.44 the same.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.harness.client_versions import LEFT_OUT, PREFIXES, VERSIONS_1X, client_class_path
from tests.interop.harness.jms import run_scenarios, scenario_names
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess

USUAL_TARGET = "atalanta"
pytestmark = [pytest.mark.interop, pytest.mark.versions, pytest.mark.timeout(900)]
OF_THE_CLIENT = {  # at a real node, too
    "subscriptions.sharedDividesMessages": "it wants the topic to exist",
    "subscriptions.sharedDurableKeepsMessagesWhileAway": "it wants the topic to exist",
    "subscriptions.sharedDurableOfAClientId": "it wants the topic to exist",
    "subscriptions.sharedEndsWithItsLastConsumer": "it wants the topic to exist",
    "temporaries.temporaryQueueEndsWithItsConnection": "the scenario asks for the queue by another name",
    "timing.expiryIntoAnAutomaticQueue": "the scenario expects the address without a prefix",
    "timing.redeliveryDelay": "it looks for an automatic dead-letter queue below another name",
}
# Each has delivered the message under the client's name of the address, which no address-setting matches.
OF_ARTEMIS = ("redelivery.afterThreeAttemptsItIsADeadLetter", "redelivery.deadLetterAfterClosedSessions")
# They take a pause of the client for a full address, or send very many messages: tests/interop/test_jms.py has them.
LEFT_TO_OTHERS = ("full.queuesLargerThanMemoryKeepTheirOrder", "full.theUsualWindowEndsAtTheLimit")


def names(phase: str = "main") -> list[str]:
    """The scenarios that these clients can run."""
    groups = tuple(f"{name.lower()}." for name in LEFT_OUT)
    left_out = (*groups, *LEFT_TO_OTHERS)
    return [name for name in scenario_names(phase) if not name.startswith(left_out)]


def single(brokers: Lineup, kind: str) -> BrokerProcess:
    """A node whose acceptor has the prefixes of these clients, started."""
    node = brokers.single(kind)
    prefix(node)
    node.start()
    return node


def prefix(node: BrokerProcess) -> None:
    """Gives the acceptor the prefixes."""
    path = node.folder / "etc" / "broker.xml"
    path.write_text(path.read_text().replace("protocols=CORE<", f"protocols=CORE{PREFIXES}<"))


@pytest.fixture(scope="module")
def prefixed(target: str, brokers: Lineup) -> BrokerProcess:
    return single(brokers, target)


@pytest.fixture(scope="module", params=VERSIONS_1X)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def results(prefixed: BrokerProcess, version: str) -> dict[str, str]:
    """The outcome of every scenario, in one run of one JVM."""
    only = ",".join(names())
    found, output = run_scenarios(prefixed.url, "--only", only, classes=client_class_path(version))
    Path(prefixed.folder, f"scenarios-{version}.log").write_text(output)
    assert found, output + prefixed.tail()
    assert prefixed.running, prefixed.tail()
    return found


@pytest.mark.parametrize("scenario", names())
def test_scenario(target: str, results: dict[str, str], scenario: str) -> None:
    assert scenario in results, "it did not run"
    if scenario in OF_THE_CLIENT:
        pytest.xfail(OF_THE_CLIENT[scenario])
    if target == "artemis" and scenario in OF_ARTEMIS:
        pytest.xfail("a real node has renamed the message")
    assert results[scenario] == ""


@pytest.mark.parametrize("first", ["old", "new"])
def test_what_one_client_leaves_the_other_finds_after_a_restart(
    target: str, brokers: Lineup, version: str, first: str
) -> None:
    """Durable and large messages, transactions, branches, subscriptions and duplicate ids, crossed both ways."""
    classes = {"old": client_class_path(version), "new": None}
    node = single(brokers, target)
    options = ("--run", f"{first}-{version}", "--only", "full.*,restart.*")
    before, output = run_scenarios(node.url, "--phase", "before", *options, classes=classes.pop(first))
    assert before == dict.fromkeys(names("before"), ""), output
    node.stop()
    node.start()
    (second,) = classes.values()
    after, output = run_scenarios(node.url, "--phase", "after", *options, classes=second)
    assert after == dict.fromkeys(names("after"), ""), output
    node.stop()
