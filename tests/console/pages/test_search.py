"""The search over two nodes."""

from __future__ import annotations

import asyncio

import pytest

from atalanta.client import connect
from tests.console.conftest import TwoNodes
from tests.console.console_rig import logged_in
from tests.console.pages.messages_of_nodes import fill, texts

pytestmark = pytest.mark.process


def test_names_of_queues_and_clients_are_found(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        for place in two_nodes.places:
            await fill(place, "needle.queue", texts(2))
        url = f"tcp://{two_nodes.second}?stay=true&clientID=needle-client"
        async with logged_in(*two_nodes.places) as user, connect(url, user="mover", password="secret") as connection:
            await connection.consumer("needle.queue", "number > 100")
            page = await user.get("/search?q=NEEDLE")
            words = page.words()
            for found in ("2 queues", "2 addresses", "1 consumers", "1 connections"):
                assert found in words
            assert page.row("needle.queue")[2:4] == ["one", "2"]
            assert "number > 100" in words and "needle-client" in words
            assert "0 queues" in (await user.get("/search?q=nothing-like-it")).words()
            assert (await user.get("/search")).status == 200

    asyncio.run(main())


def test_messages_are_found_by_a_selector(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        await fill(two_nodes.first, "hay.one", texts(3))
        await fill(two_nodes.second, "hay.one", texts(5))
        await fill(two_nodes.second, "hay.two", texts(1))
        async with logged_in(*two_nodes.places) as user:
            page = await user.get("/search?q=hay.&selector=number+%3D+0")
            assert "3 queues with messages were looked through" in page.words()
            assert page.row("hay.two")[1:] == ["two", "1"]
            page = await user.get("/search?q=hay.&selector=number+%3E%3D+2")
            assert page.row("hay.one")[1:] == ["two", "3"]
            link = next(each for each in page.links() if "selector=" in each)
            assert "3 messages that match" in (await user.get(link)).words()
            page = await user.get("/search?selector=number+%3E")
            assert page.status == 409 and "AMQ229020" in page.words()

    asyncio.run(main())


def test_a_search_stops_and_says_so(two_nodes: TwoNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atalanta.console.nodes.search.QUEUES_MAX", 1)

    async def main() -> None:
        await fill(two_nodes.first, "many.one", texts(1))
        await fill(two_nodes.first, "many.two", texts(2))
        async with logged_in(two_nodes.first) as user:
            words = (await user.get("/search?q=many.&selector=number+%3D+0")).words()
            assert "many.one" in words and "many.two" not in words and "1 were left out" in words

    asyncio.run(main())
