"""Nodes whose answers to management make no sense."""

from __future__ import annotations

from typing import cast

from atalanta.client import Management

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

    async def rows(self, operation: str, *filtered: object, **more: object) -> list[dict[str, object]]:
        return [{"name": "$.artemis.internal.sf.test.other", "messageCount": 3}, {"name": "orders", "messageCount": 1}]


def node(answer: object) -> Management:
    return cast(Management, Says(answer))
