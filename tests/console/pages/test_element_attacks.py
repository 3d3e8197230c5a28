"""Script by what a node's configuration can hold, and forms of other sites."""

from __future__ import annotations

import asyncio
import re
from urllib.parse import quote

import pytest

from tests.console.attack_texts import SCRIPT, TURNED, harmless
from tests.console.console_rig import logged_in
from tests.console.fake_nodes import FakeNode, element, install


class EvilNode(FakeNode):
    """A node whose every text is an attack."""

    def configuration(self, user: str) -> dict[str, object]:
        found = super().configuration(user)
        parameter = {"name": SCRIPT, "default": SCRIPT, "unit": SCRIPT, "meaning": SCRIPT, "values": [SCRIPT]}
        listed = {"name": "list", "list": True, "meaning": SCRIPT}
        return {
            **found, "file": f"../{SCRIPT}\r\nSet-Cookie: a=b", "why": SCRIPT, "writable": False,
            "parameters": {"bridge": [parameter, listed]},
        }  # fmt: skip

    def previewed(self, request: dict[str, object]) -> dict[str, object]:
        link = {"kind": SCRIPT, "name": SCRIPT, "from": SCRIPT, "to": TURNED}
        return {
            "digest": SCRIPT, "difference": f"--- {SCRIPT}\n+{SCRIPT}\n-\x1b[31m{TURNED}\n {SCRIPT}",
            "problems": [{"severity": "warning", "line": SCRIPT, "text": SCRIPT}], "now": [SCRIPT],
            "after_restart": [SCRIPT], "written": False, "why_not_written": SCRIPT, "refused": "",
            "picture": {"before": {"links": [link]}, "after": {"links": [{**link, "name": TURNED}]}},
        }  # fmt: skip


def evil_node() -> FakeNode:
    values = {SCRIPT: SCRIPT, "list": f"{SCRIPT},{TURNED}"}
    node = EvilNode(SCRIPT)
    node.elements = [
        element("bridge", name, values=values, state=SCRIPT, used_by=[SCRIPT], fixed=SCRIPT, file=SCRIPT)
        for name in (SCRIPT, TURNED)
    ]
    node.changes = [
        {
            "id": SCRIPT, "at": 1, "user": SCRIPT, "from": SCRIPT, "difference": f"+{SCRIPT}\n-{TURNED}",
            "undone": False, "changes": [{"action": SCRIPT, "kind": SCRIPT, "name": SCRIPT}],
        }
    ]  # fmt: skip
    return node


def test_texts_of_nodes_are_text_on_every_page(monkeypatch: pytest.MonkeyPatch) -> None:
    node = evil_node()

    async def main() -> None:
        async with logged_in(*install(monkeypatch, node)) as user:
            pages = [await user.get(path) for path in ("/configuration", "/configuration/bridge", "/changes")]
            links = [link for page in pages for link in page.links()]
            links = [link for link in links if link.startswith(("/element?", "/changes/undo?"))]
            assert any("script" in link for link in links)
            for link in dict.fromkeys(links):
                page = await user.get(link)
                pages.append(page)
                pages += [await user.get(each) for each in page.links() if each.startswith("/element/form")]
            form = next(page for page in pages if "do=change" in page.url)
            page = await user.submit(form, "/element/change", step="preview", **{f"v.{SCRIPT}": "", "v.list": "new"})
            pages.append(page)
            page = await user.submit(page, "/element/change", step="confirmed")
            assert "Counts now" in page.words()
            pages.append(page)
            form = next(page for page in pages if "/changes/undo" in page.url)
            pages.append(await user.submit(form, "/changes/undo"))
            for page in pages:
                assert page.status in (200, 404), (page.url, page.words())
                harmless(page)
            async with user.session.get(f"{user.address}configuration/file?node={quote(f'id-{SCRIPT}')}") as answer:
                name = answer.headers["Content-Disposition"].removeprefix('attachment; filename="').removesuffix('"')
                assert answer.status == 200 and re.fullmatch("[A-Za-z0-9._-]+", name)
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert all(cookie.key != "a" for cookie in user.session.cookie_jar)

    monkeypatch.setattr("atalanta.console.nodes.surveys.SessionSurvey.picture", nobody)
    asyncio.run(main())


async def nobody(survey: object) -> None:
    return None


def test_what_the_browser_sends_is_text_in_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with logged_in(*install(monkeypatch, FakeNode("one"))) as user:
            token = await user.token()
            for path in (
                "/configuration/", "/configuration/bridge?q=", "/element?kind=", "/element?kind=bridge&name=",
                "/element/form?do=add&kind=bridge&name=", "/changes/undo?node=id-one&id=", "/configuration/file?node=",
            ):  # fmt: skip
                harmless(await user.get(path + "%22%3E%3Cscript%3Ealert(1)%3C%2fscript%3E%0d%0aSet-Cookie:%20a=b"))
            for fields in (
                {"do": SCRIPT}, {"do": "add", "kind": SCRIPT}, {"do": "add", "kind": "bridge", "name": SCRIPT},
                {"do": "add", "kind": "bridge", "name": SCRIPT, "v.queue-name": SCRIPT, SCRIPT: SCRIPT},
                {"do": "add", "kind": "bridge", "name": "x", f"v.{SCRIPT}": SCRIPT, f"digest.{SCRIPT}": SCRIPT},
            ):  # fmt: skip
                harmless(await user.post("/element/change", {"form_token": token, "step": "preview", **fields}))

    monkeypatch.setattr("atalanta.console.nodes.surveys.SessionSurvey.picture", nobody)
    asyncio.run(main())


def test_forms_of_other_sites_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    node = FakeNode("one", [element("bridge", "b", state="started")])

    async def main() -> None:
        async with logged_in(*install(monkeypatch, node)) as user:
            token = await user.token()
            data = {"do": "remove", "kind": "bridge", "name": "b", "step": "confirmed"}
            for path in ("/element/change", "/element/undo", "/changes/undo"):
                assert (await user.post(path, data)).status == 403
                given = {**data, "form_token": token}
                foreign = await user.post(path, given, {"Origin": "https://evil.test", "Sec-Fetch-Site": "cross-site"})
                assert foreign.status == 403
            assert not node.posted("changeConfiguration") and not node.posted("previewConfiguration")
            # A link changes nothing.
            page = await user.get("/element/change?do=remove&kind=bridge&name=b&step=confirmed")
            assert page.status == 405 and not node.posted("changeConfiguration")

    monkeypatch.setattr("atalanta.console.nodes.surveys.SessionSurvey.picture", nobody)
    asyncio.run(main())
