"""Transactions in doubt: shown with their age, ended by hand after a page that says what it means."""

from __future__ import annotations

import asyncio
import base64

import pytest

from atalanta.client import Message, Xid, connect
from atalanta.console.nodes.transactions import read_transactions
from tests.console.conftest import TwoNodes
from tests.console.console_rig import logged_in
from tests.console.pages.messages_of_nodes import count, fill

EVIL = b"<script>alert(1)</script>"


async def prepare(place: str, queue: str, name: bytes) -> None:
    """Leaves a prepared branch behind, with one message to send."""
    async with connect(f"tcp://{place}?stay=true", user="admin", password="secret") as connection:
        branch = connection.xa_resource.branch(Xid(7, b"branch", name))
        async with branch:
            await branch.send(queue, Message("in doubt"), "anycast")
            await branch.prepare()


@pytest.mark.process
def test_a_branch_is_committed_or_rolled_back_by_hand(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        first = two_nodes.first
        await fill(first, "doubt.q", [])
        for name in (b"one-tx", EVIL):
            await prepare(first, "doubt.q", name)
        async with logged_in(*two_nodes.places) as user:
            page = await user.get("/transactions")
            assert "2 prepared" in page.words() and EVIL.decode() in page.words() and EVIL.decode() not in page.text
            forms = [form for form in page.document.forms if str(form.get("action")).endswith("/transactions/end")]
            assert len(forms) == 4
            for form in forms:
                given = {name: str(value) for name, value in form.form_values()}
                row = form.getparent().getparent().text_content()
                wanted = "commit" if "one-tx" in row else "rollback"
                if given["do"] != wanted:
                    continue
                asked = await user.post_to(str(form.get("action")), given)
                assert "The transaction manager is not asked" in asked.words()
                done = await user.submit(asked, "/transactions/end")
                assert done.row("one")[1] == "done" and done.row("one")[-1] in ("committed", "rolled back")
            page = await user.get("/transactions")
            assert "0 prepared" in page.words() and "Ended by an operator" in page.words()
            assert await count(first, "doubt.q") == 1
            again = await user.post_to("/transactions/end", {**given, "confirmed": "yes"})
            assert again.status == 404
            bad = await user.post_to("/transactions/end", {**given, "xid": "<b>"})
            assert bad.status == 400
        async with logged_in(first, user="viewer") as user:
            await prepare(first, "doubt.q", b"left")
            page = await user.get("/transactions")
            assert "left" in page.words() and "Roll back" not in page.words()
            token = await user.token()
            xid = page.document.xpath("//tbody//code")[0].text_content()
            node = page.document.xpath("//tbody/tr/td")[2].text_content()
            assert node == "one"
            given = {**given, "xid": xid, "form_token": token, "confirmed": "yes", "do": "rollback"}
            refused = await user.post_to("/transactions/end", given)
            assert "mops.broker.rollbackPreparedTransaction" in refused.words()
        async with connect(f"tcp://{first}?stay=true", user="admin", password="secret") as connection:
            await connection.xa_resource.rollback(Xid(7, b"branch", b"left"))

    asyncio.run(main())


def test_answers_of_brokers_are_read_with_care() -> None:
    related = '[{"message_operation_type": "(+) send"}, {"message_operation_type": "(-) receive"}]'
    told = '"creation_time": "11/21/26, 3:05:36\u202fPM", "xid_as_base64": "AA==", "xid_format_id": 7'
    text = f'[{{{told}, "tx_related_messages": {related}}}, 3]'
    (ours,) = read_transactions(text, in_utc=True)
    assert (ours.created, ours.sent, ours.read, ours.format_id) == (1_795_273_536_000, 1, 1, "7")
    (theirs,) = read_transactions(text, in_utc=False)
    assert theirs.created == "11/21/26, 3:05:36\u202fPM"
    assert base64.b64decode(ours.xid) == b"\0"
    for wrong in ("", "{}", "[", "[[]]", None, '[{"xid_as_base64": 1}]'):
        assert read_transactions(wrong, in_utc=True) == []
