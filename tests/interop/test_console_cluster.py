"""The console and the survey at a cluster of three: what each node has is shown, and changed there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest

from atalanta.client import Message
from tests.console.console_rig import Browser, Page, logged_in
from tests.interop.console_nodes import (
    PASSWORD,
    USER,
    Nodes,
    at,
    cli,
    client,
    console_nodes,
    count,
    fill,
    linked,
    texts,
)
from tests.interop.harness.jms import until
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def nodes(trio: str, brokers: Lineup) -> Iterator[Nodes]:
    with console_nodes(brokers, trio) as found:
        yield found


@pytest.fixture(scope="module")
def middle(nodes: Nodes) -> BrokerProcess:
    """The node in which the line-ups differ: in the mixed one a real Artemis."""
    return nodes[1]


@asynccontextmanager
async def operator(nodes: Nodes, **options: object) -> AsyncIterator[Browser]:
    async with logged_in(*map(at, nodes), user=USER, password=PASSWORD, **options) as found:
        yield found


async def ordered(user: Browser, path: str, **fields: str) -> Page:
    """Goes through the form of an action: its fields, what it would do, do it."""
    page = await user.get(path)
    if "confirmed" not in page.fields("/action"):
        page = await user.submit(page, "/action", **fields)
    assert "confirmed" in page.fields("/action"), page.words()
    page = await user.submit(page, "/action")
    assert page.status == 200, page.words()
    return page


async def page_of_queue(user: Browser, queue: str, node: BrokerProcess, **more: str) -> Page:
    """The page of the queue with its messages at this node."""
    page = await user.get(f"/queue?name={queue}")
    link = next(str(each.get("href")) for each in page.document.iter("a") if each.text_content() == node.name)
    page = await user.get(link + "".join(f"&{name}={value}" for name, value in more.items()))
    assert page.status == 200, page.words()
    return page


async def message_links(page: Page) -> list[str]:
    return [link for link in page.links() if link.startswith("/message?")]


# -- what is shown ------------------------------------------------------------------------------------
def test_queues_addresses_and_clients_of_every_node_are_shown(nodes: Nodes, middle: BrokerProcess) -> None:
    async def main() -> None:
        for number, node in enumerate(nodes):
            await fill(node, "shown", texts(number + 1))
        async with operator(nodes) as user, client(middle, "&clientID=shown-reader") as reading:
            consumer = await reading.consumer("shown", "number > 1000")
            producer = await reading.producer("shown")
            await producer.send(Message(text="last", properties={"number": 0}))
            page = await user.get("/queues?q=shown")
            row = page.row("shown")
            assert row[2:5] == ["anycast", "3 nodes", "7"] and row[7] == "1", row
            page = await user.get("/queue?name=shown")
            for number, node in enumerate(nodes):
                row = page.row(node.name)
                assert row[1] == str(number + 1 + (node is middle)), row
            assert page.row("Together")[1] == "7" and "number > 1000" in page.words()
            page = await user.get("/address?name=shown")
            assert page.row(middle.name)[1:4] == ["anycast", "1", "3"], page.row(middle.name)
            assert "shown" in (await user.get("/addresses?q=shown")).words()
            page = await user.get("/connections?q=shown-reader")
            assert page.status == 200 and middle.name in page.words() and USER in page.words()
            link = next(link for link in page.links() if link.startswith("/sessions?q="))
            assert page.document.xpath("//tbody//time"), "the time of the connection is one"
            page = await user.get(link)
            assert USER in page.words() and len(page.document.xpath("//tbody/tr")) >= 2
            page = await user.get("/consumers?q=shown-reader")
            assert page.row("shown")[1] == "number > 1000" and middle.name in page.row("shown")
            page = await user.get("/producers?q=shown")
            assert page.status == 200
            page = await user.get("/search?q=shown")
            assert "3 queues" in page.words() and "1 consumers" in page.words()
            page = await user.get("/search?q=shown&selector=number+%3D+0")
            assert page.row("shown") and "3 queues with messages were looked through" in page.words()
            await consumer.close()

    asyncio.run(main())


def test_the_first_page_has_all_nodes_links_and_nothing_wrong(nodes: Nodes, middle: BrokerProcess) -> None:
    async def main() -> None:
        async with operator(nodes) as user:
            page = await user.get("/")
            while "being asked" in page.words():
                await asyncio.sleep(0.2)
                page = await user.get("/")
            for node in nodes:
                kind = "Artemis" if node.kind == "artemis" else "Atalanta"
                assert page.row(node.name)[1].startswith(kind)
            links = page.document.xpath("//table[caption='Links']//tbody/tr")
            assert len(links) == 6 and all("linked" in link.text_content() for link in links)
            assert "wait for you" not in page.words() and "No answer" not in page.words()
            async with user.session.get(f"{user.address}picture.svg") as answer:
                assert answer.status == 200 and middle.name in await answer.text()

    asyncio.run(main())


# -- messages -----------------------------------------------------------------------------------------
def test_a_message_of_every_kind_is_seen_whole(nodes: Nodes, middle: BrokerProcess) -> None:
    async def main() -> None:
        sent = [
            Message(text='{"price": 1.5}', properties={"colour": "red", "size": 7}, priority=9),
            Message(b"\xff\xfe\x00", properties={"colour": "blue"}),
            Message(map={"name": "value"}),
            Message(text="x" * 90_000),
            Message(bytes(300_000)),
        ]
        await fill(middle, "kinds", sent)
        async with operator(nodes) as user:
            page = await page_of_queue(user, "kinds", middle)
            links = await message_links(page)
            assert len(links) == 5, page.words()
            page = await user.get(links[0])
            assert page.status == 200, page.words()
            assert page.row("colour") == ["colour", "red"] and page.row("size") == ["size", "7"]
            assert page.document.xpath("//pre/text()") == ['{\n  "price": 1.5\n}']
            assert "Priority 9" in page.words() and "Type text" in page.words()
            page = await user.get(links[1])
            assert "ff fe 00" in page.document.xpath("//pre/text()")[0]
            page = await user.get(links[2])
            assert page.row("name") == ["name", "value"]
            for link, size in ((links[3], 90_000), (links[4], 300_000)):
                page = await user.get(link)
                assert "larger than is shown" in page.words(), page.words()
                download = next(each for each in page.links() if each.startswith("/message/body?"))
                async with user.session.get(user.address + download.lstrip("/")) as answer:
                    assert answer.status == 200 and len(await answer.read()) == size

    asyncio.run(main())


def test_messages_are_browsed_by_page_and_by_selector(nodes: Nodes, middle: BrokerProcess) -> None:
    async def main() -> None:
        await fill(middle, "paged", texts(45))
        async with operator(nodes) as user:
            page = await page_of_queue(user, "paged", middle)
            assert "1–20 of 45" in page.words()
            page = await page_of_queue(user, "paged", middle, page="3")
            assert "41–45 of 45" in page.words() and len(await message_links(page)) == 5
            page = await page_of_queue(user, "paged", middle, selector="number+%3E+42")
            assert "2 messages that match" in page.words() and len(await message_links(page)) == 2
            page = await page_of_queue(user, "paged", middle, selector="number+%3E")
            assert page.document.xpath("//*[contains(@class, 'error')]"), page.words()

    asyncio.run(main())


def test_messages_are_moved_copied_retried_and_removed_at_every_node(nodes: Nodes, middle: BrokerProcess) -> None:
    async def main() -> None:
        for node in nodes:
            await fill(node, "work", texts(6))
            await fill(node, "done", [])
        async with operator(nodes) as user:
            page = await ordered(user, "/action?do=move&name=work", target="done", selector="number < 4")
            for node in nodes:
                assert page.row(node.name)[1:5] == ["done", "6", "4", "2"], page.words()
            page = await page_of_queue(user, "done", middle)
            assert " work " in page.words(), "where it came from"
            page = await ordered(user, "/action?do=retry&name=done", selector="number = 0")
            assert "3 sent back" in page.words(), page.words()
            page = await ordered(user, "/action?do=retry&name=done")
            assert "9 sent back" in page.words(), page.words()
            assert [await count(node, "work") for node in nodes] == [6, 6, 6]
            page = await ordered(user, "/action?do=purge&name=work", selector="number > 3")
            assert "6 removed" in page.words(), page.words()
            page = await ordered(user, "/action?do=expire&name=work", selector="number = 3")
            assert "3 expired" in page.words(), page.words()
            # One by one, at the middle node.
            page = await page_of_queue(user, "work", middle)
            link = (await message_links(page))[0]
            page = await user.submit(await user.get(link), "/action", do="copy-messages")
            page = await user.submit(await user.submit(page, "/action", target="done"), "/action")
            assert "1 copied" in page.words(), page.words()
            page = await user.submit(await user.get(link), "/action", do="move-messages")
            page = await user.submit(await user.submit(page, "/action", target="done"), "/action")
            assert "1 moved" in page.words(), page.words()
            link = (await message_links(await page_of_queue(user, "work", middle)))[0]
            for action, word in (("dead-letter-messages", "sent to dead letters"),):
                page = await user.submit(await user.get(link), "/action", do=action)
                page = await user.submit(page, "/action")
                assert f"1 {word}" in page.words(), page.words()
            link = (await message_links(await page_of_queue(user, "done", middle)))[0]
            page = await user.submit(await user.get(link), "/action", do="remove-messages")
            page = await user.submit(page, "/action")
            assert "1 removed" in page.words(), page.words()
            assert (await user.get(link)).status == 404
            link = (await message_links(await page_of_queue(user, "done", middle)))[0]
            page = await user.submit(await user.get(link), "/action", do="retry-messages")
            page = await user.submit(page, "/action")
            assert "1 sent back" in page.words(), page.words()
            page = await ordered(user, "/action?do=purge&name=work")
            assert [await count(node, "work") for node in nodes] == [0, 0, 0], page.words()

    asyncio.run(main())


def test_a_message_is_sent_at_the_node_that_is_chosen(nodes: Nodes, middle: BrokerProcess) -> None:
    async def main() -> None:
        for node in nodes:
            await fill(node, "post", [])
        async with operator(nodes) as user:
            for body, form, kind in (("hello", "text", "text"), ("/+8=", "base64", "bytes")):
                page = await user.get("/send?name=post")
                options = page.document.xpath("//select[@name='node']/option")
                chosen = next(str(each.get("value")) for each in options if each.text_content() == middle.name)
                fields = {"node": chosen, "body": body, "form": form, "properties": "colour=red\n"}
                page = await user.submit(page, "/send", **fields)
                assert "1 sent" in page.words(), page.words()
                page = await page_of_queue(user, "post", middle)
                page = await user.get((await message_links(page))[-1])
                assert page.row("colour") == ["colour", "red"] and f"Type {kind}" in page.words()
                shown = page.document.xpath("//pre/text()")[0]
                assert shown == "hello" if kind == "text" else "ff ef" in shown, shown
            page = await user.get("/send?name=post&kind=address")
            page = await user.submit(page, "/send", node=chosen, body="by its address")
            assert "1 sent" in page.words(), page.words()
            assert [await count(node, "post") for node in nodes] == [0, 3, 0]

    asyncio.run(main())


def test_queues_and_addresses_are_paused_and_clients_closed(nodes: Nodes, middle: BrokerProcess) -> None:
    async def main() -> None:
        for node in nodes:
            await fill(node, "halted", texts(1))
        async with operator(nodes) as user:
            for name, page_path in (("", "/queue?name=halted"), ("-address", "/address?name=halted")):
                page = await ordered(user, f"/action?do=pause{name}&name=halted")
                assert page.words().count("paused until a restart") == 3, page.words()
                for node in nodes:
                    assert "paused" in (await user.get(page_path)).row(node.name)[-1]
                await ordered(user, f"/action?do=resume{name}&name=halted")
                for node in nodes:
                    assert "paused" not in (await user.get(page_path)).row(node.name)[-1]
            async with client(middle, "&clientID=closed-reader&reconnectAttempts=0") as reading:
                await reading.consumer("halted")
                page = await user.get("/consumers?q=closed-reader")
                page = await user.submit(page, "/action")
                page = await user.submit(page, "/action")
                assert "closed" in page.words() and "failed" not in page.words(), page.words()
                assert "None." in (await user.get("/consumers?q=closed-reader")).words()
                page = await user.get("/connections?q=closed-reader")
                page = await user.submit(page, "/action")
                page = await user.submit(page, "/action")
                assert "closed" in page.words() and "failed" not in page.words(), page.words()
                assert "None." in (await user.get("/connections?q=closed-reader")).words()

    asyncio.run(main())


def test_scheduled_messages_are_listed(nodes: Nodes, middle: BrokerProcess) -> None:
    async def main() -> None:
        later = Message(text="later", properties={"_AMQ_SCHED_DELIVERY": 4_000_000_000_000})
        await fill(middle, "scheduled", [later])
        async with operator(nodes) as user:
            page = await user.get("/queue?name=scheduled")
            assert page.row(middle.name)[3] == "1"
            page = await page_of_queue(user, "scheduled", middle, view="scheduled")
            assert "1 scheduled messages" in page.words(), page.words()
            page = await ordered(user, "/action?do=purge&name=scheduled")
            assert "failed" not in page.words()

    asyncio.run(main())


# -- the configuration ----------------------------------------------------------------------------------
async def changed(user: Browser, kind: str, action: str, name: str, node: BrokerProcess | None, **values: str) -> Page:
    """Goes through the form of a change, at one node or at all of them; its values are `v.…` there."""
    named = "" if action == "add" else f"&name={name}"
    page = await user.get(f"/element/form?do={action}&kind={kind}{named}")
    assert page.status == 200, page.words()
    fields = {f"v.{key.replace('_', '-')}": value for key, value in values.items()}
    if action == "add":
        fields["name"] = name
    if node is not None:
        options = page.document.xpath("//select[@name='node']/option")
        fields["node"] = next(str(each.get("value")) for each in options if each.text_content() == node.name)
    step = "confirmed" if action in ("start", "stop") else "preview"
    page = await user.submit(page, "/element/change", step=step, **fields)
    if step == "preview":
        assert page.document.xpath("//button[@value='confirmed']"), page.words()
        page = await user.submit(page, "/element/change", step="confirmed")
    assert page.status == 200 and "failed" not in page.words(), page.words()
    return page


def test_every_kind_is_shown_with_what_each_node_tells(nodes: Nodes, middle: BrokerProcess) -> None:
    async def main() -> None:
        async with operator(nodes) as user:
            page = await user.get("/configuration")
            kinds = dict.fromkeys(link for link in page.links() if link.startswith("/configuration/"))
            assert len(kinds) > 10
            for path in kinds:
                if path.startswith("/configuration/file"):
                    continue
                page = await user.get(path)
                assert page.status == 200 and "Not everything is here" not in page.words(), (path, page.words())
                if middle.kind == "artemis" and path.endswith(("/discovery-group", "/grouping-handler")):
                    assert middle.name in page.words() and "tells nothing" in page.words(), page.words()
                for link in dict.fromkeys(each for each in page.links() if each.startswith("/element?")):
                    page = await user.get(link)
                    assert page.status == 200, (link, page.words())
            page = await user.get("/element?kind=cluster-connection&name=interop")
            for node in nodes:
                assert page.row(node.name)[1] == "started", page.words()

    asyncio.run(main())


def test_a_bridge_is_added_at_a_node_moves_a_message_and_is_removed(
    nodes: Nodes, middle: BrokerProcess, brokers: Lineup
) -> None:
    """To a broker that wants no user: a bridge that management adds has none."""
    target = brokers.single("atalanta")
    path = target.folder / "etc" / "broker.xml"
    path.write_text(path.read_text().replace("<acceptors>", "<security-enabled>false</security-enabled><acceptors>", 1))
    target.start()

    async def main() -> None:
        await fill(middle, "leaving", [])
        await fill(target, "arriving", [])
        async with operator(nodes) as user:
            await changed(user, "connector", "add", "outside", middle, host="127.0.0.1", port=str(target.port))
            page = await changed(
                user, "bridge", "add", "by-console", middle, queue_name="leaving", forwarding_address="arriving",
                static_connectors="outside", retry_interval="200",
            )  # fmt: skip
            assert page.row(middle.name)[1] == "added", page.words()
            await fill(middle, "leaving", texts(1))
            async with client(target) as connection:
                message = await (await connection.consumer("arriving")).receive(20)
                assert message is not None and message.text == "body 0"
            page = await user.get("/element?kind=bridge&name=by-console")
            assert page.row(middle.name)[1] in ("started", "connected"), page.words()
            page = await user.get("/")
            assert page.status == 200, page.words()
            page = await changed(user, "bridge", "remove", "by-console", middle)
            assert page.row(middle.name)[1] == "removed", page.words()
            assert (await user.get("/element?kind=bridge&name=by-console")).status == 404
            await changed(user, "connector", "remove", "outside", middle)

    try:
        asyncio.run(main())
    finally:
        target.close()


def test_a_divert_is_added_at_all_nodes_copies_and_is_removed(nodes: Nodes) -> None:
    async def main() -> None:
        async with operator(nodes) as user:
            values = {"address": "copied", "forwarding_address": "copies"}
            page = await changed(user, "divert", "add", "by-console", None, **values)
            for node in nodes:
                assert page.row(node.name)[1] == "added", page.words()
                await fill(node, "copies", [])
                await fill(node, "copied", [])
                async with client(node) as connection:
                    await (await connection.producer("copied")).send(Message(text="twice"))
                assert [await count(node, name) for name in ("copied", "copies")] == [1, 1], node.name
            page = await changed(user, "divert", "remove", "by-console", None)
            for node in nodes:
                assert page.row(node.name)[1] == "removed", page.words()
                async with client(node) as connection:
                    await (await connection.producer("copied")).send(Message(text="once"))
                assert [await count(node, name) for name in ("copied", "copies")] == [2, 1], node.name

    asyncio.run(main())


def test_settings_and_connectors_are_added_at_all_nodes_and_removed(nodes: Nodes) -> None:
    async def main() -> None:
        async with operator(nodes) as user:
            for kind, name, values in (
                ("connector", "new", {"host": "127.0.0.1", "port": "1"}),
                ("address-setting", "fresh.#", {"max_delivery_attempts": "3"}),
                ("security-setting", "fresh.#", {"send": "amq"}),
            ):
                page = await changed(user, kind, "add", name, None, **values)
                for node in nodes:
                    assert page.row(node.name)[1] == "added", (kind, page.words())
                path = f"/element?kind={kind}&name={name.replace('#', '%23')}"
                page = await user.get(path)
                assert page.status == 200, (kind, page.words())
                page = await changed(user, kind, "remove", name.replace("#", "%23"), None)
                for node in nodes:
                    assert page.row(node.name)[1] == "removed", (kind, page.words())

    asyncio.run(main())


def test_a_cluster_connection_is_stopped_and_started_at_a_node(nodes: Nodes, middle: BrokerProcess) -> None:
    async def main() -> None:
        async with operator(nodes) as user:
            path = "/element?kind=cluster-connection&name=interop"
            for action, state in (("stop", "stopped"), ("start", "started")):
                page = await changed(user, "cluster-connection", action, "interop", middle)
                assert page.row(middle.name)[1] == state, page.words()
                assert (await user.get(path)).row(middle.name)[1] == state

    asyncio.run(main())
    until("all forward to all", lambda: linked(nodes), 60)


# -- the survey by the command line ---------------------------------------------------------------------
def test_doctor_finds_a_healthy_cluster_healthy(nodes: Nodes) -> None:
    for node in nodes:
        shown = cli(node)("doctor", at(node), "--wait", "0.5")
        assert "3 nodes asked" in shown, shown
    found = json.loads(cli(nodes[0])("doctor", at(nodes[0]), "--wait", "0.5", "--json"))
    assert {each["name"] for each in found["nodes"]} == {each.name for each in nodes}


def test_queue_stat_sums_over_the_cluster(nodes: Nodes) -> None:
    for number, node in enumerate(nodes):
        asyncio.run(fill(node, "stat", texts(number + 1)))
    shown = cli(nodes[0])("queue", "stat", "stat", "--cluster", "--json")
    assert "stat" in shown
    text = cli(nodes[1])("queue", "stat", "stat", "--cluster")
    assert " 6 " in text and all(node.name in text for node in nodes), text


# -- what goes wrong --------------------------------------------------------------------------------------
def test_a_node_that_is_killed_is_named_and_comes_back_into_the_picture(nodes: Nodes, middle: BrokerProcess) -> None:
    async def main() -> None:
        for node in nodes:
            await fill(node, "outage", texts(1))
        async with operator(nodes) as user:
            page = await user.get("/queues?q=outage")
            assert page.row("outage")[3:5] == ["3 nodes", "3"]
            while "being asked" in (await user.get("/")).words():
                await asyncio.sleep(0.2)
            middle.kill()
            await shown(user, lambda page: "No answer" in page.words() and "away" in page.words())
            page = await user.get("/")
            links = page.document.xpath("//table[caption='Links']//tbody/tr")
            assert sum("away" in link.text_content() for link in links) >= 2, page.words()
            page = await user.get("/queues?q=outage")
            assert page.row("outage")[3:5] == ["2 nodes", "2"] and "Sums are without" in page.words()
            page = await user.get("/queue?name=outage")
            assert page.status == 200 and page.row("Together")[1] == "2"
            await asyncio.to_thread(middle.start)
            await shown(user, lambda page: "No answer" not in page.words() and page.words().count(" linked ") == 6)
            page = await user.get("/queues?q=outage")
            assert page.row("outage")[3:5] == ["3 nodes", "3"]

    asyncio.run(main())
    until("all forward to all", lambda: linked(nodes))


async def shown(user: Browser, holds: Callable[[Page], bool]) -> None:
    """The first page, until it holds."""
    page = await user.get("/")
    for _ in range(120):
        if holds(page):
            return
        await asyncio.sleep(0.5)
        page = await user.get("/")
    raise AssertionError(page.words())
