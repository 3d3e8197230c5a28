"""The pages of the configuration over two running nodes, with the effects that clients and files see."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from atalanta.client import connect
from atalanta.console.configuration.element_kinds import KINDS
from tests.broker_process import BrokerProcess
from tests.broker_xml import PERMISSIONS, cluster, write_broker_xml, write_users
from tests.console.conftest import SECURITY, USERS, until_a_pair
from tests.console.console_rig import Browser, Page, logged_in
from tests.console.pages.messages_of_nodes import fill, texts
from tests.ports import free_port

pytestmark = pytest.mark.process

GROUP = """<broadcast-groups>
      <!-- announces this node -->
      <broadcast-group name="shout"><local-bind-address>127.0.0.1</local-bind-address>
        <group-address>231.7.7.9</group-address><group-port>{port}</group-port>
        <broadcast-period>500</broadcast-period><connector-ref>here</connector-ref></broadcast-group>
    </broadcast-groups>
    """


@dataclass
class WritableNodes:
    """Host and port of two nodes that write changes to their files, and the files."""

    places: tuple[str, str]
    files: tuple[Path, Path]
    ports: tuple[int, int]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WritableNodes]:
    """The nodes `one`, with the users of the console's other tests, and `two`, where anybody may do everything: a
    bridge that management adds has no user."""
    ports = (free_port(), free_port())
    given = "".join(
        f'<permission type="{name}" roles="{",".join(USERS)}"/>' for name in PERMISSIONS if name != "manage"
    )
    files = []
    for name, port, other in zip(("one", "two"), ports, reversed(ports), strict=True):
        folder = tmp_path_factory.mktemp("elements") / name
        more = SECURITY.format(all=given) + GROUP.format(port=free_port()) + cluster(port, [other])
        own = "configuration-changes = true\n"
        secure = name == "one"
        xml = write_broker_xml(folder, port, name, more, data=str(folder / "data"), security=secure, own=own)
        write_users(xml, dict.fromkeys(USERS, "secret"), {user: user for user in USERS})
        files.append(xml)
    brokers = [BrokerProcess(xml, port=port) for xml, port in zip(files, ports, strict=True)]
    with brokers[0], brokers[1]:
        until_a_pair(list(ports))
        yield WritableNodes(
            (f"127.0.0.1:{ports[0]}", f"127.0.0.1:{ports[1]}"), (files[0], files[1]), (ports[0], ports[1])
        )


async def previewed(user: Browser, form: str, **fields: str) -> Page:
    return await user.submit(await user.get(form), "/element/change", **{"step": "preview", **fields})


async def confirmed(user: Browser, page: Page) -> Page:
    return await user.submit(page, "/element/change", step="confirmed")


def test_an_added_bridge_moves_a_message_until_it_is_taken_back(nodes: WritableNodes) -> None:
    first, second = nodes.places

    async def main() -> None:
        await fill(first, "bridged.from", [])
        await fill(second, "bridged.to", [])
        async with logged_in(first) as user:
            before = nodes.files[0].read_text()
            one = (await user.get("/element/form?do=add&kind=bridge")).document.xpath("//option[text()='one']/@value")
            page = await previewed(
                user, "/element/form?do=add&kind=bridge", name="mover", node=str(one[0]),
                **{
                    "v.queue-name": "bridged.from", "v.forwarding-address": "bridged.to", "v.retry-interval": "100",
                    "v.static-connectors": f"to{nodes.ports[1]}",
                },
            )  # fmt: skip
            assert 'bridge name="mover"' in page.words(), page.words()
            assert nodes.files[0].read_text() == before
            page = await confirmed(user, page)
            assert page.row("one")[1] == "added", page.words()
            assert 'name="mover"' in nodes.files[0].read_text() and "<!-- announces this node -->" in before
            await fill(first, "bridged.from", texts(1))
            async with connect(f"tcp://{second}?stay=true", user="admin", password="secret") as connection:
                consumer = await connection.consumer("bridged.to")
                message = await consumer.receive(20)
                assert message is not None and message.text == "body 0"
            shown = await user.get("/element?kind=bridge&name=mover")
            assert shown.row("one")[1] == "started"
            page = await user.submit(page, "/element/undo")
            assert page.row("one")[1] == "taken back", page.words()
            assert nodes.files[0].read_text() == before
            assert (await user.get("/element?kind=bridge&name=mover")).status == 404

    asyncio.run(main())


def test_a_broadcast_group_is_removed_at_all_nodes_and_comes_back(nodes: WritableNodes) -> None:
    async def main() -> None:
        async with logged_in(*nodes.places) as user:
            texts_before = [file.read_text() for file in nodes.files]
            assert (await user.get("/element?kind=broadcast-group&name=shout")).row("one")[1] == "started"
            page = await previewed(user, "/element/form?do=remove&kind=broadcast-group&name=shout")
            page = await confirmed(user, page)
            assert page.row("one")[1] == page.row("two")[1] == "removed", page.words()
            assert (await user.get("/element?kind=broadcast-group&name=shout")).status == 404
            assert all("shout" not in file.read_text() for file in nodes.files)
            page = await user.get("/changes")
            assert page.words().count("remove broadcast-group shout") == 2
            for _ in nodes.places:
                page = await user.get("/changes")
                rows = page.document.xpath("//tr[th[starts-with(normalize-space(), 'remove')]]")
                link = next(str(link) for row in rows for link in row.xpath(".//a[contains(@href, 'undo?')]/@href"))
                page = await user.submit(await user.get(link), "/changes/undo")
                assert "taken back" in page.words(), page.words()
            assert [file.read_text() for file in nodes.files] == texts_before
            assert (await user.get("/element?kind=broadcast-group&name=shout")).row("two")[1] == "started"

    asyncio.run(main())


def test_two_operators(nodes: WritableNodes) -> None:
    async def main() -> None:
        async with logged_in(*nodes.places) as ann, logged_in(*nodes.places) as ben:
            path = "/element/form?do=change&kind=broadcast-group&name=shout"
            form = await ben.get(path)
            page = await confirmed(ann, await previewed(ann, path, **{"v.broadcast-period": "700"}))
            assert page.row("two")[1] == "changed", page.words()
            page = await ben.submit(form, "/element/change", **{"step": "preview", "v.broadcast-period": "900"})
            assert "has changed" in page.words() and "700" in page.words()
            assert not page.document.xpath("//button[@value='confirmed']")
            page = await ben.submit(page, "/element/change", step="form")
            assert page.fields("/element/change")["w.broadcast-period"] == "700"
            page = await ben.submit(page, "/element/change", step="preview")
            page = await confirmed(ben, page)
            assert all("900" in file.read_text() for file in nodes.files)

    asyncio.run(main())


def test_a_viewer_sees_everything_and_changes_nothing(nodes: WritableNodes) -> None:
    async def main() -> None:
        before = [file.read_text() for file in nodes.files]
        async with logged_in(nodes.places[0], user="viewer") as user:
            for kind in KINDS:
                page = await user.get(f"/configuration/{kind.name}")
                assert page.status == 200 and "Not everything is here" not in page.words(), page.words()
            page = await user.get("/configuration/ha-groups")
            while "being asked" in page.words():
                page = await user.get("/configuration/ha-groups")
            assert page.row("one")[1:3] == ["Primary Only", "alone"]
            page = await user.get("/element?kind=broadcast-group&name=shout")
            assert page.row("group-address")[1] == "231.7.7.9"
            assert not page.document.xpath("//a[contains(@class, 'button')]")
            data = {
                "form_token": await user.token(), "do": "remove", "kind": "broadcast-group", "name": "shout",
                "step": "confirmed",
            }  # fmt: skip
            page = await user.post("/element/change", data)
            assert "permission edit on mops.broker.changeConfiguration is missing" in page.words()
            page = await user.post("/element/change", {**data, "do": "stop"})
            assert "permission edit on mops.broadcastgroup.shout.stop is missing" in page.words()
        assert [file.read_text() for file in nodes.files] == before

    asyncio.run(main())


def test_a_group_is_stopped_and_started(nodes: WritableNodes) -> None:
    """A stop without the file: the form is its own confirmation."""

    async def main() -> None:
        async with logged_in(*nodes.places) as user:
            page = await user.get("/element/form?do=stop&kind=broadcast-group&name=shout")
            page = await user.submit(page, "/element/change", step="confirmed")
            assert page.row("one")[1] == "stopped", page.words()
            assert (await user.get("/element?kind=broadcast-group&name=shout")).row("one")[1] == "stopped"
            page = await user.get("/element/form?do=start&kind=broadcast-group&name=shout")
            await user.submit(page, "/element/change", step="confirmed")
            assert (await user.get("/element?kind=broadcast-group&name=shout")).row("one")[1] == "started"

    asyncio.run(main())
