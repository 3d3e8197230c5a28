"""Answers of a broker that is none, or not well: refused as such, whatever stands in them."""

from __future__ import annotations

import pytest

from atalanta.client.management import ManagementFailed, page_of, result_of
from atalanta.client.message import ReceivedMessage
from tests.wire.core.server.server_rig import text_message


@pytest.mark.parametrize("text", ["[" * 100_000, "{", "9" * 5000])
def test_an_answer_that_is_no_json(text: str) -> None:
    reply = ReceivedMessage(text_message("a", text), "q")
    with pytest.raises(ManagementFailed, match="the answer is not JSON"):
        result_of(reply, "broker", "listQueues")


@pytest.mark.parametrize(
    "text",
    [None, 5, "", "[]", "[" * 100_000, '{"data": 5}', '{"data": [5]}', '{"data": [], "count": "many"}',
     '{"data": [], "count": 1e999}'],
)  # fmt: skip
def test_a_page_that_is_none(text: object) -> None:
    with pytest.raises(ManagementFailed, match="not a page of rows"):
        page_of(text, "listQueues")


def test_a_page() -> None:
    assert page_of('{"data": [{"name": "a"}], "count": 7}', "listQueues") == ([{"name": "a"}], 7)
