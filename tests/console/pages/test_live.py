"""Events instead of questions: what changes is sent, to those who may see it, as long as they may."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from atalanta.console.access import streams
from tests.console.conftest import TwoNodes
from tests.console.console_rig import Browser, browser, logged_in, served
from tests.console.pages.messages_of_nodes import fill, texts

pytestmark = pytest.mark.process


class Stream:
    """An open stream and its events."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self.answer = answer

    async def event(self) -> tuple[str, str]:
        """Returns the next event: its name and its text."""
        name, lines = "", []
        async with asyncio.timeout(20):
            while line := (await self.answer.content.readline()).decode():
                field, _, value = line.rstrip("\n").partition(": ")
                if field == "event":
                    name = value
                elif field == "data":
                    lines.append(value)
                elif not field and name:
                    return name, "\n".join(lines)
        return "closed", ""

    async def until(self, text: str) -> str:
        """Returns the first event that has this text."""
        while True:
            name, found = await self.event()
            assert name == "part", name
            if text in found:
                return found


@asynccontextmanager
async def stream(user: Browser, path: str, **headers: str) -> AsyncIterator[Stream]:
    async with user.session.get(f"{user.address}{path}", headers=headers, read_bufsize=1 << 22) as answer:
        assert answer.status == 200, answer.status
        assert answer.content_type == "text/event-stream" and answer.headers["X-Accel-Buffering"] == "no"
        assert answer.headers["Cache-Control"] == "no-store"
        yield Stream(answer)


def test_an_open_queue_is_sent_when_it_changes_and_ends_with_the_session(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        name = "live<b>.q"
        await fill(two_nodes.first, name, texts(2))
        async with logged_in(two_nodes.first) as user:
            page = await user.get("/queue?name=live%3Cb%3E.q")
            link = page.document.xpath("//@data-live")[0].lstrip("/")
            async with stream(user, link) as events:
                found = await events.until("live&lt;b&gt;.q")
                assert "<b>.q" not in found and "<html" not in found and "form_token" not in found
                await fill(two_nodes.first, name, texts(3))
                await events.until('<td class="number">5</td>')
                async with stream(user, "live?page=/") as others:
                    assert "What is wrong" in (await others.event())[1]
                    await user.post("/logout", {"form_token": await user.token()})
                    for each in (events, others):
                        names = [(await each.event())[0] for _ in range(3)]
                        assert "end" in names and names[-1] == "closed", names

    asyncio.run(main())


def test_streams_are_few_and_for_our_own_pages(two_nodes: TwoNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "STREAMS_OF_A_USER_MAX", 2)

    async def main() -> None:
        async with logged_in(two_nodes.first) as user:
            await user.get("/")
            async with stream(user, "live?page=/"), stream(user, "live?page=/"):
                assert (await user.get("/live?page=/")).status == 503
                assert (await user.get("/")).status == 200
            for site in ("cross-site", "same-site"):
                assert (await user.get("/live?page=/", headers={"Sec-Fetch-Site": site})).status == 403
            assert (await user.get("/live?page=/messages")).status == 404
            async with asyncio.timeout(20):  # until the console sees that the others have left
                while (await user.get("/live?page=/queue&name=nowhere")).status == 503:
                    await asyncio.sleep(0.2)
            async with stream(user, "live?page=/queue&name=nowhere") as events:
                assert (await events.event())[0] == "stop"
        async with served(two_nodes.first) as server, browser(server) as nobody:
            assert "/login" in (await nobody.get("/live?page=/")).url

    asyncio.run(main())


def test_lines_over_time_begin_with_the_log_in(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        await fill(two_nodes.first, "lines.q", texts(4))
        async with logged_in(two_nodes.first) as user:
            for path, words in (("/lines", "Messages waiting"), ("/queue?name=lines.q", "top 1 consumers 0")):
                async with asyncio.timeout(20):
                    while words not in (page := await user.get(path)).words():
                        await asyncio.sleep(0.1)
                assert page.document.xpath("//svg[@role='img']/@aria-label")
                assert not page.document.xpath("//*[@style]")

    asyncio.run(main())
