"""The drain of a real Artemis: what its management is asked, and when nothing is moved. Real nodes: interop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import cast

import pytest

from atalanta.cli.cluster import drain_artemis
from atalanta.cli.cluster.drain_artemis import (
    RealMembers,
    begin_scale_down,
    drained_artemis,
    empty_links,
    make_queues,
    until_known,
    way_to,
)
from atalanta.cli.output.outcome import Refused
from atalanta.client import CallTimedOut, ConnectionLost, Management, ManagementFailed
from atalanta.survey.broker_login import BrokerLogin

QUEUE: dict[str, object] = {
    "name": "daily", "address": "news", "routingType": "MULTICAST", "filter": None, "durable": True,
    "maxConsumers": -1, "autoCreated": True, "messageCount": 7, "internalQueue": False, "temporary": False,
}  # fmt: skip


class Answers:
    """A management that answers by a function, and remembers what it was asked."""

    reply_queue = "own"

    def __init__(self, answer: Callable[[str, tuple[object, ...]], object]) -> None:
        self.answer = answer
        self.asked: list[tuple[object, ...]] = []

    async def call(self, resource: str, operation: str, *parameters: object) -> object:
        self.asked.append((operation, *parameters))
        return self.answer(operation, parameters)

    async def get(self, resource: str, attribute: str) -> object:
        if attribute == "NodeID":
            return "leaves"
        self.asked.append(("get", resource, attribute))
        return self.answer("get", (resource, attribute))

    async def rows(self, operation: str, *parameters: str, **more: object) -> list[dict[str, object]]:
        return cast("list[dict[str, object]]", await self.call("broker", operation, *parameters))


def leaving_at(member: Answers) -> BrokerLogin:
    """A target whose members all answer like `member`."""

    class Opened:
        def management(self) -> Answers:
            return member

    class Leaving:
        def at(self, place: str) -> Leaving:
            return self

        @asynccontextmanager
        async def connect(self) -> AsyncIterator[Opened]:
            yield Opened()

    return cast(BrokerLogin, Leaving())


def as_management(answers: Answers) -> Management:
    return cast(Management, answers)


def test_the_target_gets_the_queues_that_it_lacks_with_their_settings() -> None:
    def answer(operation: str, parameters: tuple[object, ...]) -> object:
        return [{"name": "known"}] if operation == "listQueues" else None

    target = Answers(answer)
    assert asyncio.run(make_queues(as_management(target), [{"name": "known"}, QUEUE])) == 1
    [(_, definition, existing)] = [asked for asked in target.asked if asked[0] == "createQueue"]
    assert existing is True
    assert json.loads(str(definition)) == {
        "name": "daily", "address": "news", "routing-type": "MULTICAST", "durable": True, "max-consumers": -1,
        "auto-created": True,
    }  # fmt: skip


CONNECTORS = [
    {"name": "self", "params": {"host": "a", "port": "1"}},
    {"name": "to-b", "params": {"host": "b", "port": "2", "sslEnabled": "true"}},
]


@pytest.mark.parametrize(
    ("leaving", "to", "found"),
    [
        ("tcp://a:1", "to-b", ("to-b", "b:2")),
        ("tcp://a:1?sslEnabled=true", "b:2", ("to-b", "b:2")),
        ("tcp://a:1", "c:3", (None, "c:3")),
        ("tcp://a:1", "tcp://c:3?sslEnabled=true", (None, "c:3")),
        ("tcp://a:1", "tcp://b:2?trustStorePath=other", (None, "b:2")),
    ],
)
def test_a_connector_of_the_leaving_node_is_preferred(leaving: str, to: str, found: tuple[str | None, str]) -> None:
    node = as_management(Answers(lambda *_: json.dumps(CONNECTORS)))
    assert asyncio.run(way_to(node, "a:1", BrokerLogin(leaving, None, None), to)) == found


@pytest.mark.parametrize(
    ("leaving", "to", "why"),
    [
        ("tcp://a:1", None, "--to HOST:PORT"),
        ("tcp://a:1", "elsewhere", "has no connector 'elsewhere'"),
        ("tcp://a:1?sslEnabled=true", "c:3", "with TLS it needs one"),
    ],
)
def test_a_target_that_the_leaving_node_cannot_dial_is_refused(leaving: str, to: str | None, why: str) -> None:
    node = as_management(Answers(lambda *_: json.dumps(CONNECTORS)))
    with pytest.raises(Refused, match=why):
        asyncio.run(drained_artemis(node, "a:1", BrokerLogin(leaving, None, None), to))


def test_the_end_of_the_connection_is_the_answer_to_scale_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain_artemis, "POLL_INTERVAL_S", 0.0)

    def answer(operation: str, parameters: tuple[object, ...]) -> object:
        if operation == "scaleDown":
            raise CallTimedOut("no answer", 3)
        if len(node.asked) < 4:
            return "2.44.0"
        raise ConnectionLost("it is gone")

    node = Answers(answer)
    asyncio.run(begin_scale_down(as_management(node), "a:1", "drain"))
    assert [asked[0] for asked in node.asked] == ["scaleDown", "getVersion", "getVersion", "getVersion"]


def test_nothing_is_moved_if_a_real_member_does_not_know_a_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain_artemis, "POLL_INTERVAL_S", 0.0)
    monkeypatch.setattr(drain_artemis, "MEETING_S", 0.0)
    binding = "RemoteQueueBindingImpl [address=news, storeAndForwardQueue=$.artemis.internal.sf.c.{}, remoteQueueID=9]"
    known = [binding.format("leaves")]

    def answer(operation: str, parameters: tuple[object, ...]) -> object:
        if operation == "scaleDownProgress":
            raise ManagementFailed("broker", operation, "AMQ229069: no such operation")
        return ",".join(known)

    member = as_management(Answers(answer))
    with pytest.raises(Refused, match="does not learn of the queues of news"):
        asyncio.run(until_known(member, "b:1", "leaves", "takes", {"news"}))
    known.append(binding.format("takes"))
    asyncio.run(until_known(member, "b:1", "leaves", "takes", {"news"}))
    known.clear()  # the cluster does not have this address
    asyncio.run(until_known(member, "b:1", "leaves", "takes", {"news"}))


def empties(monkeypatch: pytest.MonkeyPatch, under_way: list[int]) -> Answers:
    """Waits for the links of a member with these counts, the last one for ever. Returns the member."""
    monkeypatch.setattr(drain_artemis, "LINK_POLL_INTERVAL_S", 0.0)

    def answer(operation: str, parameters: tuple[object, ...]) -> object:
        if operation == "get":
            return under_way.pop(0) if len(under_way) > 1 else under_way[0]
        return [{"name": "$.artemis.internal.sf.cluster.leaves"}, {"name": "$.artemis.internal.sf.cluster.stays"}]

    member = Answers(answer)
    members = RealMembers()
    members.places["other"] = "b:1"
    asyncio.run(empty_links(as_management(member), "a:1", leaving_at(member), members))
    return member


def test_the_drain_waits_until_no_member_has_messages_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    member = empties(monkeypatch, [2, 0, 0, 1, 0])
    asked = [each[1:] for each in member.asked if each[0] == "get"]
    assert asked == [("queue.$.artemis.internal.sf.cluster.leaves", "MessageCount")] * (4 + drain_artemis.QUIET_COUNT)


def test_nothing_is_moved_while_members_go_on_sending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain_artemis, "MEETING_S", 0.0)
    with pytest.raises(Refused, match="pause the senders until this command has ended"):
        empties(monkeypatch, [1])


def test_another_broker_has_the_options_of_the_url() -> None:
    leaving = BrokerLogin("tcp://a:1?sslEnabled=true", "u", "p")
    assert leaving.at("b:2").url == "tcp://b:2?sslEnabled=true"
    assert leaving.at("tcp://c:3").url == "tcp://c:3"
