"""Commands for operators report a node's answers that make no sense."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from atalanta.cli.admin.answers import row_of, rows_of
from atalanta.cli.broker_login import BrokerLogin
from atalanta.cli.cluster.drain import progress_of
from atalanta.cli.cluster.rebalance import Conversation
from atalanta.cli.cluster.survey import Survey
from atalanta.cli.cluster.view import NodeView
from atalanta.cli.output.outcome import Refused
from atalanta.client import Connection, Management, ManagementFailed

NONSENSE = [
    "", "{", "[" * 100_000, "null", "7", '"text"', "[[]]", "[1]", '{"phase": 3}', None, 12, b"{}",
]  # fmt: skip


class Says:
    """A node that gives `answer` to every question, or a list of its own for `rows`."""

    reply_queue = "replies"

    def __init__(self, answer: object) -> None:
        self.answer = answer

    async def call(self, resource: str, operation: str, *given: object) -> object:
        return self.answer

    async def get(self, resource: str, attribute: str) -> object:
        return ["test"] if attribute == "ClusterConnectionNames" else self.answer

    async def rows(self, operation: str) -> list[dict[str, object]]:
        return [{"name": "$.artemis.internal.sf.test.other", "messageCount": 3}, {"name": "orders", "messageCount": 1}]


def node(answer: object) -> Management:
    return cast(Management, Says(answer))


@pytest.mark.parametrize("answer", NONSENSE)
def test_drain_names_the_node_that_makes_no_sense(answer: object) -> None:
    with pytest.raises(Refused) as refusal:
        asyncio.run(progress_of(node(answer), "broker2:61616"))
    assert str(refusal.value).startswith("broker2:61616 does not report its progress: ")
    assert len(str(refusal.value)) < 250


@pytest.mark.parametrize(
    "answer",
    [*NONSENSE, '{"node": "a"}', '{"node": "a", "clients": 1, "on": true, "members": [1], "moves": [],'
     ' "moving": 0, "stay": {}, "sent": 0}'],
)  # fmt: skip
def test_rebalance_leaves_out_the_node_that_makes_no_sense_and_says_so(answer: object) -> None:
    conversation = Conversation(("broker1", None, None))
    good = (
        '{"node": "a", "clients": 1, "on": true, "members": [], "moves": [], "moving": 0,'
        ' "stay": {}, "sent": 0}'
    )
    conversation.members = {"broker1:61616": node(good), "broker2:61616": node(answer)}
    asyncio.run(conversation._ask(True))
    assert [view["node"] for view in conversation.views] == ["a"]
    assert list(conversation.refusals) == ["broker2:61616"]
    assert "an unexpected answer" in conversation.refusals["broker2:61616"]


@pytest.mark.parametrize("answer", NONSENSE)
def test_doctor_and_topology_say_what_a_node_could_not_be_asked(answer: object) -> None:
    class Known:
        topology: list[Any] = []

    view = NodeView("broker2:61616", "id")
    survey = Survey(BrokerLogin("tcp://broker2", None, None), 0)
    survey.found.nodes.append(view)
    survey._connections["id"] = (cast(Connection, Known()), node(answer))
    asyncio.run(survey._fill(view, node(answer), cast(Connection, Known())))
    asyncio.run(survey._again(view))
    assert all("\n" not in line and len(line) < 250 for line in view.unasked)
    if isinstance(answer, str) and answer != "null":
        assert any("unexpected answer" in line for line in view.unasked)


def test_what_was_wanted_is_there() -> None:
    assert row_of('{"a": 1, "b": "x"}', "broker", "it", a=int, b=str) == {"a": 1, "b": "x"}
    assert rows_of('[{"a": 1}]', "broker", "it", a=int) == [{"a": 1}]
    assert rows_of(None, "broker", "it") == []
    with pytest.raises(ManagementFailed, match="broker: it: an unexpected answer: "):
        row_of('{"a": true}', "broker", "it", a=int)
