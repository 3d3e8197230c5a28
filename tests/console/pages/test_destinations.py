"""Queues and addresses that are created and deleted: at one node, at all, and not while somebody uses them."""

from __future__ import annotations

import asyncio

import pytest

from atalanta.client import connect
from tests.console.conftest import TwoNodes
from tests.console.console_rig import logged_in
from tests.console.pages.messages_of_nodes import count, fill, texts

pytestmark = pytest.mark.process


def test_a_queue_is_created_at_all_nodes_and_deleted_when_it_is_empty(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        async with logged_in(*two_nodes.places) as user:
            form = await user.get("/create?kind=queue")
            fields = {"name": "new.q", "address": "new.a", "routing": "MULTICAST", "filter": "price > 5"}
            page = await user.submit(form, "/create", **fields, max_consumers="3")
            assert page.row("one")[-1] == "created" and page.row("two")[-1] == "created"
            page = await user.get("/queue?name=new.q")
            assert "multicast queue of the address new.a , with the filter price > 5" in page.words()
            page = await user.submit(form, "/create", name="new.q")
            assert page.row("two")[-1] == "it was there already: nothing was changed"
            page = await user.submit(await user.get("/delete?kind=queue&name=new.q"), "/delete")
            assert page.row("one")[-1] == "deleted" and page.row("two")[-1] == "deleted"
            assert (await user.get("/queue?name=new.q")).status == 404

    asyncio.run(main())


def test_a_queue_in_use_says_what_would_be_lost(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        first = two_nodes.first
        await fill(first, "used.q", texts(3))
        async with (
            logged_in(*two_nodes.places) as user,
            connect(f"tcp://{first}?stay=true", user="admin", password="secret") as connection,
        ):
            await connection.consumer("used.q", window=0)
            page = await user.get("/delete?kind=queue&name=used.q")
            assert page.row("one") == ["one", "3", "1"]
            assert "with all 3 messages: gone for good" in page.words()
            page = await user.submit(page, "/delete")
            assert page.status == 409 and "it has 3 messages and 1 consumer (now): it was not deleted" in page.words()
            page = await user.submit(page, "/delete", with_messages="yes")
            assert page.status == 409 and "it has 1 consumer (now)" in page.words()
            assert await count(first, "used.q") == 3
            page = await user.submit(page, "/delete", with_messages="yes", with_consumers="yes")
            assert page.row("one")[1:4] == ["done", "3", "3"]
            assert (await user.get("/queue?name=used.q")).status == 404

    asyncio.run(main())


def test_an_address_goes_with_its_queues_when_that_is_ticked(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        async with logged_in(two_nodes.second) as user:
            page = await user.submit(await user.get("/create?kind=address"), "/create", name="topic", multicast="yes")
            assert page.row("two")[-1] == "created"
            page = await user.get("/address?name=topic")
            assert "multicast" in page.row("two")[1] and "anycast" in page.row("two")[1]
            form = next(link for link in page.links() if "/create?" in link)
            await user.submit(await user.get(form), "/create", name="topic.one", routing="MULTICAST")
            page = await user.submit(await user.get("/delete?kind=address&name=topic"), "/delete")
            assert page.status == 409 and "it has 1 queue (now)" in page.words()
            page = await user.submit(page, "/delete", with_queues="yes")
            assert page.row("two")[-1] == "deleted, with 1 queue"
            assert (await user.get("/address?name=topic")).status == 404

    asyncio.run(main())


def test_forms_that_make_no_sense_and_users_without_rights(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        await fill(two_nodes.first, "kept.q", [])
        async with logged_in(two_nodes.first) as user:
            form = await user.get("/create?kind=queue")
            assert (await user.submit(form, "/create", name=" ")).status == 400
            assert (await user.submit(form, "/create", name="a", max_consumers="many")).status == 400
            assert (await user.submit(form, "/create", name="a", routing="both")).status == 400
            assert (await user.get("/create?kind=user")).status == 404
            assert (await user.get("/delete?kind=queue&name=nowhere")).status == 404
            token = await user.token()
            fields = {"kind": "queue", "name": "kept.q", "with_messages": "yes"}
            foreign = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
            assert (await user.post("/delete", {**fields, "form_token": token}, foreign)).status == 403
            assert (await user.post("/delete", {**fields, "form_token": "guessed"})).status == 403
        async with logged_in(two_nodes.first, user="viewer") as user:
            for path, words in (("/queues", "Create a queue"), ("/queue?name=kept.q", "Delete")):
                assert words not in (await user.get(path)).words()
            token = await user.token()
            page = await user.post("/delete", {**fields, "form_token": token})
            assert "The permission edit on mops.broker.destroyQueue is missing" in page.words()
            page = await user.post(
                "/create", {"kind": "queue", "name": "theirs", "routing": "ANYCAST", "form_token": token}
            )
            assert "The permission edit on mops.broker.createQueue is missing" in page.words()
        async with logged_in(two_nodes.first, read_only=True) as user:
            assert "Create a queue" not in (await user.get("/queues")).words()
            assert (await user.get("/create?kind=queue")).status == 403
            token = await user.token()
            page = await user.post("/delete", {**fields, "form_token": token})
            assert page.status == 403 and "only reads" in page.words()
        assert await count(two_nodes.first, "kept.q") == 0

    asyncio.run(main())
