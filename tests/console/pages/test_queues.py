"""Queues and messages over two nodes: seen, moved, sent, paused, removed, with the numbers that the nodes have."""

from __future__ import annotations

import asyncio
import json

import pytest

from atalanta.client import Message, connect
from tests.console.conftest import TwoNodes
from tests.console.console_rig import Browser, Page, logged_in
from tests.console.pages.messages_of_nodes import count, fill, texts

pytestmark = pytest.mark.process


def test_a_node_that_only_the_topology_names_waits_for_the_users_word(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        async with logged_in(two_nodes.first, user="viewer") as user:
            page = await user.get("/")
            assert page.row("one") and two_nodes.second in page.words()
            with pytest.raises(AssertionError):
                page.row("two")
            token = page.fields("/logout")["form_token"]
            page = await user.post("/nodes/agree", {"form_token": token, "at": "evil.example:61616"})
            assert page.status == 404
            page = await user.submit(await user.get("/"), "/nodes/agree")
            assert page.row("two")
            assert "wait for you" not in page.words()
            # The same user is not asked again, another one is.
            await user.post("/logout", {"form_token": token})
            await user.log_in("viewer", "secret")
            assert (await user.get("/")).row("two")
            await user.post("/logout", {"form_token": await user.token()})
            await user.log_in("admin", "secret")
            assert "wait for you" in (await user.get("/")).words()

    asyncio.run(main())


def test_queues_are_summed_over_nodes_and_shown_one_by_one(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        await fill(two_nodes.first, "sum.a", texts(3))
        await fill(two_nodes.second, "sum.a", texts(4))
        await fill(two_nodes.second, "sum.b", texts(1))
        async with logged_in(*two_nodes.places) as user:
            page = await user.get("/queues?q=sum.&sort=messageCount&order=desc")
            assert page.row("sum.a")[3:5] == ["2 nodes", "7"]
            assert page.row("sum.b")[3:5] == ["two", "1"]
            assert page.words().index("sum.a") < page.words().index("sum.b")
            assert "2 queues with 8 messages" in page.words()
            one = next(link for link in (await user.get("/")).links() if link.startswith("/queues?node="))
            page = await user.get(f"{one}&q=sum.")
            assert page.row("sum.a")[3:5] == ["one", "3"]
            assert "sum.b" not in page.words().replace("“sum.b”", "")
            page = await user.get("/queue?name=sum.a")
            assert page.row("one")[1] == "3" and page.row("two")[1] == "4" and page.row("Together")[1] == "7"
            page = await user.get("/queue?name=sum.none")
            assert page.status == 404 and "no node has a queue sum.none" in page.words()
            page = await user.get("/address?name=sum.a")
            assert page.row("sum.a")[3] == "2 nodes"
            assert "sum.a" in (await user.get("/addresses?q=sum.")).words()

    asyncio.run(main())


def test_a_node_that_does_not_answer_is_named(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        await fill(two_nodes.first, "lost", texts(2))
        async with logged_in(two_nodes.first, "127.0.0.1:1") as user:
            for path in ("/", "/queues", "/addresses", "/connections", "/queue?name=lost"):
                page = await user.get(path)
                assert page.status == 200
                assert "127.0.0.1:1" in page.words() and "refused" in page.words(), path

    asyncio.run(main())


async def ordered(user: Browser, path: str, **fields: str) -> Page:
    """Goes through the form of an action: fields, what it would do, do it."""
    page = await user.get(path)
    if "confirmed" not in page.fields("/action"):
        page = await user.submit(page, "/action", **fields)
    assert "confirmed" in page.fields("/action"), page.words()
    return await user.submit(page, "/action")


def test_messages_are_moved_with_counts_before_and_after(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        first = two_nodes.first
        await fill(first, "move.from", texts(5))
        await fill(first, "move.to", texts(1))
        async with logged_in(first) as user:
            page = await user.get("/action?do=move&name=move.from")
            page = await user.submit(page, "/action", target="move.to", selector="number < 3")
            assert page.row("one") == ["one", "3"]
            assert "target move.to has now Node Messages one 1" in page.words()
            assert await count(first, "move.from") == 5, "nothing is done before it is confirmed"
            page = await user.submit(page, "/action")
            assert page.row("one")[1:5] == ["done", "5", "3", "2"]
            assert await count(first, "move.to") == 4
            page = await ordered(user, "/action?do=move&name=move.from", target="move.to", count="1")
            assert page.row("one")[2:5] == ["2", "1", "1"]
            page = await user.get("/action?do=move&name=move.from")
            page = await user.submit(page, "/action", target="move.nowhere")
            assert page.status == 400 and "no queue move.nowhere at one" in page.words()
            page = await user.get("/action?do=move&name=move.from")
            page = await user.submit(page, "/action", target="move.to", selector="number <")
            assert page.status == 409
            assert await count(first, "move.from") == 1
            assert "Move messages: move.from to move.to" in (await user.get("/jobs")).words()

    asyncio.run(main())


def test_queues_are_paused_and_emptied_at_all_nodes(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        for place in two_nodes.places:
            await fill(place, "all", texts(2))
        async with logged_in(*two_nodes.places) as user:
            page = await ordered(user, "/action?do=pause&name=all")
            assert page.row("one")[1] == "done" and page.row("two")[5] == "paused until a restart"
            assert "paused" in (await user.get("/queue?name=all")).row("two")[-1]
            assert "paused" in (await user.get("/queues?q=all")).row("all")[-1]
            page = await ordered(user, "/action?do=resume&name=all")
            assert "paused" not in (await user.get("/queue?name=all")).row("two")[-1]
            found = [link for link in (await user.get("/")).links() if link.startswith("/queues?node=")]
            node = found[-1].removeprefix("/queues?node=").partition("&")[0]
            page = await ordered(user, "/action?do=purge&name=all", node=node, selector="number = 0")
            assert page.row("two")[2:5] == ["2", "1", "1"]
            page = await user.get("/action?do=purge&name=all")
            page = await user.submit(page, "/action")
            assert "3 messages of all at 2 nodes will be removed" in page.words()
            page = await user.submit(page, "/action")
            assert "3 removed" in page.words()
            assert [await count(place, "all") for place in two_nodes.places] == [0, 0]

    asyncio.run(main())


def test_a_message_is_sent_shown_and_taken_away(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        first = two_nodes.first
        await fill(first, "letters", [])
        await fill(first, "letters.old", [])
        async with logged_in(first) as user:
            form = await user.get("/send?name=letters")
            body = '{"price": 1.10, "big": 12345678901234567890, "name": "<b>x</b>"}'
            page = await user.submit(form, "/send", body=body, properties="colour=red\nsize=a=b\n")
            assert "1 sent" in page.words()
            page = await user.get("/queue?name=letters")
            assert "colour red" in page.words()
            link = next(each for each in page.links() if each.startswith("/message?"))
            page = await user.get(link)
            assert page.document.xpath("//pre/text()") == [
                '{\n  "price": 1.10,\n  "big": 12345678901234567890,\n  "name": "<b>x</b>"\n}'
            ]
            assert page.row("size") == ["size", "a=b"]
            shown = (await user.get(f"{link}&as=hex")).document.xpath("//pre/text()")
            assert shown[0].startswith("00000000  7b 22 70")
            page = await user.submit(page, "/action", do="copy-messages")
            page = await user.submit(page, "/action", target="letters.old")
            page = await user.submit(page, "/action")
            assert "1 copied" in page.words()
            assert [await count(first, name) for name in ("letters", "letters.old")] == [1, 1]
            page = await user.submit(await user.get(link), "/action", do="remove-messages")
            assert "1 messages of letters will be removed" in page.words()
            page = await user.submit(page, "/action")
            assert await count(first, "letters") == 0
            assert (await user.get(link)).status == 404
            page = await user.submit(form, "/send", body="/+8=", form="base64", count="3")
            assert "3 sent" in page.words()
            page = await user.get("/queue?name=letters")
            page = await user.get(next(each for each in page.links() if each.startswith("/message?")))
            assert "ff ef" in page.document.xpath("//pre/text()")[0]

    asyncio.run(main())


def test_messages_are_browsed_in_pages_and_by_selector(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        await fill(two_nodes.first, "browsed", texts(45))
        async with logged_in(two_nodes.first) as user:
            page = await user.get("/queue?name=browsed&page=3")
            assert "41–45 of 45" in page.words() and "body 44" in page.words() and "body 39" not in page.words()
            page = await user.get("/queue?name=browsed&selector=number+%3E+42")
            assert "2 messages that match" in page.words() and "body 43" in page.words()
            page = await user.get("/queue?name=browsed&selector=number+%3E")
            assert page.status == 200 and not page.document.xpath("//input[@name='id']")
            fields = (await user.get("/queue?name=browsed")).fields("/action")
            ids = (await user.get("/queue?name=browsed")).document.xpath("//input[@name='id']/@value")
            data = [*fields.items(), ("do", "remove-messages"), *(("id", each) for each in ids[:3])]
            page = await user.post("/action", data)
            assert "3 messages of browsed will be removed" in page.words()
            form = [*page.form("/action").form_values()]
            page = await user.post("/action", form)
            assert page.row("one")[2:5] == ["45", "3", "42"]
            assert len(ids) == 20 and not (await user.get("/queue?name=browsed")).text.count(f'value="{ids[0]}"')

    asyncio.run(main())


def test_a_large_body_is_a_download(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        body = bytes(range(256)) * 4_000
        await fill(two_nodes.first, "large", [Message(body), Message(text="x" * 70_000), Message(text="täxt")])
        async with logged_in(two_nodes.first) as user:
            page = await user.get("/queue?name=large")
            links = [each for each in page.links() if each.startswith("/message?")]
            for link, size in zip(links, (len(body), 70_000, 5), strict=True):
                page = await user.get(link)
                assert bool(page.document.xpath("//pre")) is (size < 65_536)
                download = next(each for each in page.links() if each.startswith("/message/body?"))
                async with user.session.get(user.address + download.lstrip("/")) as answer:
                    assert len(await answer.read()) == size
                    assert answer.headers["Content-Type"] == "application/octet-stream"
                    assert answer.headers["Content-Disposition"].startswith('attachment; filename="large-')
                    assert answer.headers["X-Content-Type-Options"] == "nosniff"

    asyncio.run(main())


def test_dead_letters_go_back_to_where_they_came_from(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        first = two_nodes.first
        await fill(first, "work", texts(2))
        await fill(first, "parking", [])
        async with logged_in(first) as user:
            await ordered(user, "/action?do=move&name=work", target="parking")
            page = await user.get("/queue?name=parking")
            assert page.row("one")[1] == "2" and "Came from" in page.words() and " work " in page.words()
            page = await ordered(user, "/action?do=retry&name=parking")
            assert "2 sent back" in page.words()
            assert await count(first, "work") == 2

    asyncio.run(main())


def test_clients_are_listed_and_closed(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        await fill(two_nodes.first, "read", [])
        url = f"tcp://{two_nodes.first}?stay=true&clientID=reader-7"
        async with logged_in(two_nodes.first) as user, connect(url, user="mover", password="secret") as connection:
            await connection.consumer("read")
            page = await user.get("/consumers?q=reader-7")
            assert page.row("read")[3] == "mover"
            assert "reader-7" in (await user.get("/queue?name=read")).words()
            page = await user.get("/connections?q=reader-7")
            page = await user.submit(page, "/action")
            page = await user.submit(page, "/action")
            assert "closed" in page.words()
            page = await user.get("/connections?q=reader-7")
            assert "None." in page.words()

    asyncio.run(main())


@pytest.mark.parametrize("user", ["viewer", "mover"])
def test_a_user_without_rights_has_no_buttons_and_is_refused(two_nodes: TwoNodes, user: str) -> None:
    async def main() -> None:
        queue = f"guarded-{user}"
        await fill(two_nodes.first, queue, texts(3))
        await fill(two_nodes.first, "guarded.to", [])
        async with logged_in(two_nodes.first, user=user) as browser:
            page = await browser.get(f"/queue?name={queue}")
            assert "body 2" in page.words()
            buttons = [str(each.text_content()) for each in page.document.xpath("//a[@class='button']")]
            assert buttons == (["Move messages"] if user == "mover" else [])
            assert not page.document.xpath("//a[@class='button danger'] | //button[@name='do']")
            assert not (await browser.get("/connections")).document.xpath("//td//button")
            token = await browser.token()
            data = {"form_token": token, "do": "purge", "name": queue, "confirmed": "yes"}
            page = await browser.post("/action", data)
            assert "failed" in page.words()
            assert f"permission edit on mops.queue.{queue}.removeMessages is missing" in page.words()
            node = (await browser.get(f"/queue?name={queue}")).fields("/action")["node"]
            page = await browser.post(
                "/send", {"form_token": token, "name": queue, "node": node, "body": "x"}
            )
            assert f"mops.queue.{queue}.sendMessage" in page.words()
            assert await count(two_nodes.first, queue) == 3
            data = {"form_token": token, "do": "move", "name": queue, "target": "guarded.to", "confirmed": "yes"}
            page = await browser.post("/action", data)
            assert ("3 moved" in page.words()) is (user == "mover")

    asyncio.run(main())


def test_a_console_that_only_reads_changes_nothing(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        await fill(two_nodes.first, "kept", texts(1))
        async with logged_in(two_nodes.first, read_only=True) as user:
            page = await user.get("/queue?name=kept")
            assert "read only" in page.words() and not page.document.xpath("//a[contains(@class, 'button')]")
            assert not page.document.xpath("//button[@name='do']")
            token = page.fields("/logout")["form_token"]
            data = {"form_token": token, "do": "purge", "name": "kept", "confirmed": "yes"}
            for path, fields in (("/action", data), ("/send", {**data, "body": "x"})):
                page = await user.post(path, fields)
                assert page.status == 403 and "only reads" in page.words()
            assert (await user.get("/action?do=purge&name=kept")).status == 403
            assert await count(two_nodes.first, "kept") == 1

    asyncio.run(main())


def test_looking_creates_nothing(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        async with logged_in(two_nodes.first) as user:
            node = next(link for link in (await user.get("/")).links() if "node=" in link).partition("node=")[2]
            for path in ("/message", "/message/body"):
                page = await user.get(f"{path}?queue=never.there&node={node}&id=1&at=1")
                assert page.status == 404
            assert "No queue" in (await user.get("/queues?q=never.there")).words()

    asyncio.run(main())


def test_requests_that_make_no_sense_are_answered(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        async with logged_in(two_nodes.first) as user:
            token = await user.token()
            for path in (
                "/queues?page=99999999999999999999&size=-1&sort=__class__&order=x&node=",
                "/queues?page=0&size=1e9", "/queue", "/address", "/message", "/job", "/action?do=__init__&name=x",
                "/queues?node=nowhere", "/queues?q=" + "%00%ff" * 100, "/queue?name=" + "x" * 3_000,
                "/message?id=99999999999999999999999&queue=x&node=x", "/action?do=send&name=x",
            ):  # fmt: skip
                page = await user.get(path)
                assert page.status in (200, 400, 404, 409), path
            for fields in (
                {"do": "purge"}, {"do": "move", "name": "x", "target": "x"}, {"do": "remove-messages", "name": "x"},
                {"do": "remove-messages", "name": "x", "id": "1; drop"}, {"do": "close-consumer"}, {},
                {"do": "move", "name": "x", "target": "y", "count": "-1"},
            ):  # fmt: skip
                page = await user.post("/action", {"form_token": token, **fields})
                assert page.status in (400, 404), (fields, page.status)
            long = {"form_token": token, "body": "x" * (1 << 20) + "y", "name": "q", "node": "n"}
            assert (await user.post("/send", long)).status == 400
            page = await user.post("/send", {"form_token": token, "body": "x" * (3 << 20)})
            assert page.status == 413

    asyncio.run(main())


def test_json_of_a_deep_message_is_text(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        deep = "[" * 5_000 + "]" * 5_000
        await fill(two_nodes.first, "deep", [Message(text=deep), Message(text=json.dumps([[]] * 3))])
        async with logged_in(two_nodes.first) as user:
            links = [each for each in (await user.get("/queue?name=deep")).links() if each.startswith("/message?")]
            assert (await user.get(links[0])).document.xpath("//pre/text()") == [deep]

    asyncio.run(main())
