"""Script, markup and tricks by everything that a client can name: all of it is text on the page."""

from __future__ import annotations

import asyncio

import pytest

from atalanta.client import Message, connect
from atalanta.console.access.request_guard import SECURITY_HEADERS
from tests.console.attack_texts import SCRIPT, TURNED, harmless
from tests.console.conftest import TwoNodes
from tests.console.console_rig import Browser, browser, logged_in, served

pytestmark = pytest.mark.process

QUEUE = f"evil{SCRIPT}"


async def plant(place: str) -> None:
    """Sends messages that are an attack in every field, to a queue whose name is one."""
    async with connect(f"tcp://{place}?stay=true", user="admin", password="secret") as connection:
        await connection.create_queue(QUEUE, routing="anycast", ignore_existing=True, filter=None)
        await connection.create_queue(TURNED, routing="anycast", ignore_existing=True)
        producer = await connection.producer(QUEUE)
        properties = {
            SCRIPT: SCRIPT, "Content-Security-Policy": "x\r\nSet-Cookie: a=b", "turned": TURNED, "escape": "\x1b[31m",
            "_AMQ_ORIG_ADDRESS": SCRIPT, "_AMQ_ORIG_QUEUE": SCRIPT, "dlqDeliveryFailureCause": SCRIPT,
            "JMSType": SCRIPT, "form_token": "x",
        }  # fmt: skip
        for body in (f"<html>{SCRIPT}</html>", f'{{"a": "{SCRIPT[2:]}"}}', "\x00\x1b[2J\u202e", SCRIPT):
            await producer.send(
                Message(
                    text=body,
                    properties=properties,
                    correlation_id=SCRIPT,
                    reply_to=f"queue://{SCRIPT}",
                    group_id=SCRIPT,
                )
            )
        await producer.send(Message(map={SCRIPT: SCRIPT}))


async def all_pages(user: Browser) -> None:
    """Looks at every page that names what was planted, and at those behind its links."""
    seen: set[str] = set()
    waiting = [
        "/", "/queues", "/queues?internal=1", "/addresses", "/connections", "/sessions", "/consumers", "/producers",
        "/jobs", "/search?q=evil", "/search?q=%3Cscript&selector=1%3D1",
    ]  # fmt: skip
    while waiting and len(seen) < 150:
        path = waiting.pop(0)
        seen.add(path)
        page = await user.get(path)
        assert page.status in (200, 404), (path, page.status, page.words())
        assert page.headers["Content-Security-Policy"] == SECURITY_HEADERS["Content-Security-Policy"]
        harmless(page)
        for link in page.links():
            shown = link.startswith(("/queue?", "/address?", "/message?", "/action?", "/send?"))
            if shown and "evil" in link and "#" not in link and link not in seen and link not in waiting:
                waiting.append(link)
    assert any(path.startswith("/message?") for path in seen)
    assert any(path.startswith("/action?") for path in seen)


def test_names_and_messages_are_text_on_every_page(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        await plant(two_nodes.first)
        options = "stay=true&clientID=%22%3E%3Cscript%3Ealert(1)%3C/script%3E"
        async with (
            logged_in(two_nodes.first) as user,
            connect(f"tcp://{two_nodes.first}?{options}", user="admin", password="secret") as connection,
        ):
            await connection.consumer(QUEUE, "'<script>' = '<img src=x onerror=alert(1)>'")
            await connection.producer(QUEUE)
            await all_pages(user)
            page = await user.get("/queues?q=gpj")
            assert "gpj.\\u202eexe" in page.words()

    asyncio.run(main())


def test_what_the_browser_sends_is_text_in_the_answer(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        async with logged_in(two_nodes.first) as user:
            token = await user.token()
            for path in (
                "/queue?name=", "/queues?q=", "/queues?node=", "/address?name=", "/job?id=", "/consumers?q=",
                "/action?do=purge&name=", "/message?id=1&queue=x&node=", "/send?name=", "/login?next=",
            ):  # fmt: skip
                harmless(await user.get(path + "%22%3E%3Cscript%3Ealert(1)%3C/script%3E%0d%0aSet-Cookie:%20a=b"))
            for fields in (
                {"do": SCRIPT}, {"do": "purge", "name": SCRIPT}, {"do": "move", "name": SCRIPT, "target": SCRIPT},
                {"do": "close-consumer", "node": SCRIPT, "consumer": SCRIPT},
            ):  # fmt: skip
                page = await user.post("/action", {"form_token": token, **fields})
                harmless(page)
            harmless(await user.post("/nodes/agree", {"form_token": token, "at": SCRIPT}))
            harmless(await user.get("/queue?name=x&selector=" + "%22%3E%3Cscript%3E"))
            assert all(cookie.key != "a" for cookie in user.session.cookie_jar)

    asyncio.run(main())


def test_the_form_of_the_login_shows_the_name_as_text(two_nodes: TwoNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atalanta.console.pages.login.REFUSAL_S", 0)

    async def main() -> None:
        async with served(two_nodes.first) as server, browser(server) as user:
            page = await user.log_in(SCRIPT, SCRIPT)
            assert page.status == 403 and page.fields("/login")["user"] == SCRIPT
            harmless(page)

    asyncio.run(main())


def test_a_download_is_for_the_disk(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        await plant(two_nodes.first)
        async with logged_in(two_nodes.first) as user:
            links = (await user.get("/queues?q=evil")).links()
            page = await user.get(next(link for link in links if link.startswith("/queue?name=evil")))
            page = await user.get(next(link for link in page.links() if link.startswith("/message?")))
            link = next(each for each in page.links() if each.startswith("/message/body"))
            async with user.session.get(user.address + link.lstrip("/")) as answer:
                assert answer.status == 200
                assert answer.headers["Content-Type"] == "application/octet-stream"
                assert "script" not in answer.headers["Content-Disposition"].replace("_script_", "")
                assert "sandbox" in answer.headers["Content-Security-Policy"]
                assert "a" not in answer.cookies

    asyncio.run(main())


def test_a_refused_selector_is_text(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        await plant(two_nodes.first)
        async with logged_in(two_nodes.first) as user:
            link = next(link for link in (await user.get("/queues?q=evil")).links() if "name=evil" in link)
            page = await user.get(f"{link}&selector=%3Cscript%3Ealert(1)%3C%2Fscript%3E")
            assert page.status == 200
            harmless(page)

    asyncio.run(main())
