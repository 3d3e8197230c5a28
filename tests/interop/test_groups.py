"""Replicated groups of ours and the real JMS client: what it confirmed is there once, whichever member serves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.interop.harness.failover import Failover
from tests.interop.harness.jms import (
    PASSWORD,
    USER,
    Jms,
    JmsError,
    run_scenarios,
    scenario_names,
    until,
)
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess
from tests.interop.harness.replicated_group import (
    ReplicatedGroup,
    hand_over,
    kill_broker,
    kill_guard,
    role,
)
from tests.runtime.ha.managers.witness_process import PASSWORD as VOTERS_PASSWORD
from tests.runtime.ha.managers.witness_process import witnesses

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

SIZES = (2, 3)


@pytest.fixture
def quorum(tmp_path: Path) -> Iterator[str]:
    """Three voters, as lines of [ha.manager]."""
    (tmp_path / "password").write_text(VOTERS_PASSWORD)
    with witnesses(tmp_path) as voters:
        named = ",".join(f"127.0.0.1:{each.port}" for each in voters)
        yield f'kind = "quorum"\nvoters = "{named}"\npassword-file = "{tmp_path / "password"}"\n'


WAYS: list[Callable[[BrokerProcess], None]] = [
    kill_broker, kill_guard, hand_over, BrokerProcess.kill, kill_broker,
]  # fmt: skip


@pytest.mark.parametrize("size", SIZES)
def test_kills_handovers_and_a_rolling_restart_lose_and_double_nothing(brokers: Lineup, quorum: str, size: int) -> None:
    with ReplicatedGroup(brokers, quorum, size) as group:
        group.start()
        with Failover(group.url, "orders") as jms:
            jms.working(100)
            for end in WAYS:
                leaves = group.active()
                end(leaves)
                group.active(other_than=leaves)
                jms.working(100)
                if not leaves.running:
                    leaves.launch()
                group.until_synced()
            for node in group.members:
                node.stop()
                jms.working(50)
                node.launch()
                group.until_synced()
            jms.over()


def test_the_service_goes_back_to_the_primary_of_three(brokers: Lineup, quorum: str) -> None:
    with ReplicatedGroup(brokers, quorum, 3, failback=True) as group:
        group.start()
        with Failover(group.url, "orders") as jms:
            primary = group.members[0]
            for end in (kill_broker, BrokerProcess.kill):
                jms.working(50)
                end(primary)
                group.active(other_than=primary)
                jms.working(50)
                primary.launch()
                until("the primary serves", lambda: role(primary) == "active", 60)
                group.until_synced()
            jms.over()


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_20_stops_and_failbacks(brokers: Lineup, quorum: str) -> None:
    """A stop in good order of the primary, which comes back and gets the service again. `-s` shows every exception."""
    with ReplicatedGroup(brokers, quorum, 2, failback=True) as group:
        group.start()
        with Failover(group.url, "orders") as jms:
            primary = group.members[0]
            for _ in range(20):
                jms.working(20)
                primary.stop()
                group.active(other_than=primary)
                jms.working(20)
                primary.launch()
                until("the primary serves", lambda: role(primary) == "active", 60)
                group.until_synced()
            jms.over()


@pytest.fixture
def folder_manager(tmp_path: Path) -> str:
    """A folder that all members reach, as lines of [ha.manager]."""
    (tmp_path / "locks").mkdir()
    return f'kind = "file"\nlocks-folder = "{tmp_path / "locks"}"\n'


@pytest.mark.parametrize("end", [BrokerProcess.kill, hand_over], ids=["kill", "handover"])
def test_a_failover_keeps_what_a_restart_keeps(
    brokers: Lineup, folder_manager: str, end: Callable[[BrokerProcess], None]
) -> None:
    """Scheduled and large messages, durable subscriptions, prepared branches of XA, duplicate ids; Restart.java."""
    with ReplicatedGroup(brokers, folder_manager) as group:
        group.start()
        before, output = run_scenarios(group.members[0].url.partition("?")[0], "--phase", "before", "--run", "group")
        assert before == dict.fromkeys(scenario_names("before"), ""), output
        end(group.members[0])
        serves = group.active(other_than=group.members[0])
        after, output = run_scenarios(serves.url.partition("?")[0], "--phase", "after", "--run", "group")
        assert after == dict.fromkeys(scenario_names("after"), ""), output


@pytest.mark.parametrize("end", [kill_broker, BrokerProcess.kill, hand_over], ids=["broker", "started", "handover"])
def test_sessions_that_are_open_go_on_at_the_other_member(
    jms: Jms, brokers: Lineup, folder_manager: str, end: Callable[[BrokerProcess], None]
) -> None:
    with ReplicatedGroup(brokers, folder_manager) as group:
        group.start()
        jms("open", "group", group.url, USER, PASSWORD)
        jms("open", "client", group.url, USER, PASSWORD, "client")
        temporary = jms("temporary", "temporary", "group")[0]
        subscriber = jms.consumer("subscriber", "client", "durable:news:sub")
        for name in ("large", "later", "news", "transacted"):
            jms.producer(name, "group", f"{'topic' if name == 'news' else 'queue'}:{name}")
        transacted = jms.producer("transaction", "group", "queue:transacted", "transacted")
        jms.producer("to temporary", "group", f"queue:{temporary}")
        jms.send("large", range(3), length=300_000)
        jms.send("later", range(3), delay=15_000)
        jms.send("news", range(3))
        assert jms.receive(subscriber, 1) == ["0"]
        jms.send(transacted, range(3))  # not committed
        end(group.members[0])
        group.active(other_than=group.members[0])
        with pytest.raises(JmsError, match="TransactionRolledBackException|AMQ219031"):
            jms("commit", transacted)
        jms.send(transacted, range(3, 6))
        jms("commit", transacted)
        jms.send("to temporary", range(5), dup="t")
        assert jms.receive("temporary", 5, 5_000) == list("01234")
        rest = [text.rstrip("!") for text in jms.collect([subscriber], 2)[0]]
        assert sorted(set(rest) - {"0"}) == ["1", "2"]  # "0" was acknowledged without an answer
        for name, texts in (("transacted", "345"), ("large", "012"), ("later", "012")):
            consumer = jms.consumer(f"{name}.consumer", "group", f"queue:{name}")
            assert sorted(jms.receive(consumer, 3, 20_000)) == list(texts)
            assert jms.receive(consumer, 1) == []
        jms.close_all("group", "client")
