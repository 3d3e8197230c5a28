"""Who did what, as the nodes have kept it, and tables as files."""

from __future__ import annotations

import asyncio
import csv
import io
import json

import pytest

from tests.console.conftest import TwoNodes
from tests.console.console_rig import Browser, logged_in
from tests.console.pages.messages_of_nodes import fill, texts

pytestmark = pytest.mark.process


async def file_of(user: Browser, path: str) -> tuple[str, str]:
    """Returns the name of a downloaded file and its text."""
    async with user.session.get(f"{user.address}{path}") as answer:
        assert answer.status == 200 and "sandbox" in answer.headers["Content-Security-Policy"]
        return answer.headers["Content-Disposition"], await answer.text()


def test_changes_have_user_browser_and_node(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        await fill(two_nodes.first, "audit.q", texts(1))
        async with logged_in(*two_nodes.places) as user:
            page = await user.get("/action?do=pause&name=audit.q")
            page = await user.submit(page, "/action")
            await user.submit(page, "/action")
        async with logged_in(*two_nodes.places, user="viewer") as user:
            token = await user.token()
            fields = {"do": "purge", "name": "audit.q", "confirmed": "yes", "form_token": token}
            await user.post("/action", fields)
            page = await user.get("/audit?q=audit.q")
            rows = page.document.xpath("//tbody/tr")
            cells = [[" ".join(cell.text_content().split()) for cell in row] for row in rows]
            refused, done = cells[:2]
            assert refused[1:3] == ["viewer", "127.0.0.1"] and refused[4:6] == ["removeMessages", "queue.audit.q"]
            assert "EDIT" in refused[-1] and refused[-2] == "one"
            assert done[1:3] == ["admin", "127.0.0.1"] and done[4] == "pause" and done[-1] == ""
            _, text = await file_of(user, "audit?q=audit.q&as=json")
            assert [row["user"] for row in json.loads(text)["data"][:2]] == ["viewer", "admin"]
        async with logged_in(two_nodes.first) as user:  # a paused queue would be a finding of other tests
            page = await user.submit(await user.get("/action?do=resume&name=audit.q"), "/action")
            assert page.row("one")[-1] == "resumed"

    asyncio.run(main())


def test_a_table_is_a_file_with_the_same_filter_and_order(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        for number in range(3):
            await fill(two_nodes.first, f"file.{number}", texts(number))
        await fill(two_nodes.first, "=file.HYPERLINK(0)", [])
        async with logged_in(*two_nodes.places) as user:
            name, text = await file_of(user, "queues?q=file.&sort=messageCount&order=desc&size=25&page=9&as=csv")
            rows = list(csv.DictReader(io.StringIO(text)))
            assert name == 'attachment; filename="queues.csv"'
            assert [row["name"] for row in rows][:2] == ["file.2", "file.1"]
            assert "'=file.HYPERLINK(0)" in [row["name"] for row in rows] and len(rows) == 4
            for path in ("addresses", "connections", "sessions", "consumers", "producers"):
                name, text = await file_of(user, f"{path}?as=json")
                assert json.loads(text)["complete"] is True and f"{path}.json" in name
            page = await user.get("/queues?q=file.&as=exe")
            assert any("as=csv" in link and "q=file." in link for link in page.links())

    asyncio.run(main())
