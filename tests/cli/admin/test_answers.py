"""Commands for operators report a node's answers that make no sense."""

from __future__ import annotations

import asyncio

import pytest

from atalanta.cli.cluster.drain import progress_of
from atalanta.cli.cluster.rebalance import Conversation
from atalanta.cli.output.outcome import Refused
from atalanta.client import ManagementFailed
from atalanta.survey.node.answers import row_of, rows_of
from tests.survey.nonsense import NONSENSE, node


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


def test_what_was_wanted_is_there() -> None:
    assert row_of('{"a": 1, "b": "x"}', "broker", "it", a=int, b=str) == {"a": 1, "b": "x"}
    assert rows_of('[{"a": 1}]', "broker", "it", a=int) == [{"a": 1}]
    assert rows_of(None, "broker", "it") == []
    with pytest.raises(ManagementFailed, match="broker: it: an unexpected answer: "):
        row_of('{"a": true}', "broker", "it", a=int)
