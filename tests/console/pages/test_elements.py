"""The pages of the configuration over nodes that answer from memory."""

from __future__ import annotations

import asyncio
import io
import json
import zipfile
from collections.abc import Awaitable, Callable

import pytest

from atalanta.client import ManagementFailed
from tests.console.console_rig import Browser, Page, logged_in
from tests.console.fake_nodes import FakeNode, bridge, element, install, refused

Act = Callable[[Browser], Awaitable[None]]
BRIDGE = "/element?kind=bridge&name=b"


def play(
    monkeypatch: pytest.MonkeyPatch, nodes: list[FakeNode], act: Act, user: str = "admin", read_only: bool = False
) -> None:
    """Carries out what a user does in a console of these nodes."""

    async def main() -> None:
        async with logged_in(*install(monkeypatch, *nodes), user=user, read_only=read_only) as browser:
            await act(browser)

    # The first page after a log-in asks the survey, which these nodes do not answer.
    monkeypatch.setattr("atalanta.console.nodes.surveys.SessionSurvey.picture", nobody)
    asyncio.run(main())


async def nobody(survey: object) -> None:
    return None


def actions(page: Page) -> list[str]:
    """Returns the buttons of a page."""
    return [str(each.text_content()).strip() for each in page.document.xpath("//a[contains(@class, 'button')]")]


def test_elements_are_compared_over_all_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(user: Browser) -> None:
        page = await user.get("/configuration/bridge")
        assert page.row("b")[1] == "started" and "differs retry-interval" in page.row("b")[2]
        assert page.row("only")[2] == "missing at two"
        assert page.row("same") == ["same", "started", "the same at 2 nodes", "", "q", "east west"]
        page = await user.get("/configuration")
        assert page.row("Core bridges")[1:] == ["3", "2 not the same everywhere b, only"]
        assert page.row("Acceptors")[1] == "0" and page.row("one")[1:3] == ["broker.xml", "are written to the file"]
        assert "read-only" in page.row("two")[2]
        page = await user.get(BRIDGE)
        differing = page.row("retry-interval differs")
        assert differing == ["retry-interval differs", "2000", "500", "2000", "ms", "the pause"]
        assert page.row("password")[1:3] == ["hidden", "hidden"]
        assert page.row("one")[1:3] == ["started", "line 7 of broker.xml"]

    # A value that is the default is the same as none.
    one = FakeNode("one", [bridge(), bridge("same", **{"retry-interval": "2000"}), bridge("only")])
    two = FakeNode("two", [bridge(**{"retry-interval": "500"}), bridge("same")], writable=False)
    play(monkeypatch, [one, two], act)


def test_an_element_that_is_added_at_all_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = FakeNode("one"), FakeNode("two")

    async def act(user: Browser) -> None:
        page = await user.get("/configuration/bridge")
        assert actions(page) == ["Add a bridge"]
        form = await user.get("/element/form?do=add&kind=bridge")
        assert "v.password" not in form.text and "v.name" not in form.text
        page = await user.submit(form, "/element/change", name="x", step="preview")
        assert "needs queue-name" in page.words() and not one.posted("previewConfiguration")
        given = {"name": "x", "v.queue-name": "orders", "v.static-connectors": "east\r\n west \r\n", "v.ha": "true"}
        page = await user.submit(page, "/element/change", step="preview", **given)
        words = page.words()
        assert "Add bridge x?" in words and "bridge b starts" in words and "acceptor a: members" in words
        assert page.row("bridge")[1:] == ["old", "queue q", "east", "gone"] and "fresh" in words
        assert not one.changes and not two.changes
        page = await user.submit(page, "/element/change", step="confirmed")
        assert page.row("one")[1] == page.row("two")[1] == "added" and "Counts now" in page.words()
        values = {"queue-name": "orders", "ha": "true", "static-connectors": ["east", "west"]}
        for node in (one, two):
            [request] = node.posted("changeConfiguration")
            assert request["changes"] == [{"action": "add", "kind": "bridge", "name": "x", "values": values}]
            assert request["by"] == "127.0.0.1"
        page = await user.submit(page, "/element/undo")
        assert page.row("one")[1] == page.row("two")[1] == "taken back"
        assert not one.elements and not two.elements

    play(monkeypatch, [one, two], act)


def test_only_what_differs_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    one = FakeNode("one", [bridge(**{"retry-interval": "500", "forwarding-address": "there"})])

    async def act(user: Browser) -> None:
        form = await user.get("/element/form?do=change&kind=bridge&name=b")
        assert form.fields("/element/change")["v.static-connectors"].split() == ["east", "west"]
        page = await user.submit(form, "/element/change", step="preview")
        assert "Nothing differs" in page.words()
        page = await user.submit(
            form, "/element/change", **{"step": "preview", "v.retry-interval": "700", "v.forwarding-address": ""}
        )
        assert page.row("forwarding-address")[1] == "the default"
        page = await user.submit(page, "/element/change", step="confirmed")
        [request] = one.posted("changeConfiguration")
        assert request["changes"] == [
            {
                "action": "change",
                "kind": "bridge",
                "name": "b",
                "values": {"forwarding-address": None, "retry-interval": "700"},
            }
        ]
        token = await user.token()
        for name in ("v.password", "v.user", "v.__class__"):
            data = {"form_token": token, "do": "change", "kind": "bridge", "name": "b", name: "x", "step": "confirmed"}
            assert "no parameter" in (await user.post("/element/change", data)).words()
        assert len(one.posted("changeConfiguration")) == 1

    play(monkeypatch, [one], act)


def test_the_first_failure_stops_and_can_be_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [FakeNode("a", [bridge()]), FakeNode("b", [bridge()]), FakeNode("c", [bridge()])]

    async def act(user: Browser) -> None:
        page = await user.submit(
            await user.get("/element/form?do=remove&kind=bridge&name=b"), "/element/change", step="preview"
        )
        assert "Remove at a, then b, then c" in page.words()
        nodes[1].refusal = "it is used by address x"
        page = await user.submit(page, "/element/change", step="confirmed")
        assert [page.row(name)[1] for name in "abc"] == ["removed", "failed", "waiting"]
        assert "it is used by address x" in page.row("b")[2] and "Not every node has it. It is at a." in page.words()
        assert not nodes[2].posted("changeConfiguration")
        page = await user.submit(page, "/element/undo")
        assert page.row("a")[1] == "taken back" and nodes[0].elements == [bridge()]
        assert (await user.get(BRIDGE)).row("a")

    play(monkeypatch, nodes, act)


def test_a_change_that_one_node_refuses_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = {"severity": "error", "line": 12, "text": "there is no connector 'east'"}
    nodes = [FakeNode("a", [bridge()]), FakeNode("b", [bridge()], problems=[problem])]

    async def act(user: Browser) -> None:
        form = await user.get("/element/form?do=remove&kind=bridge&name=b")
        page = await user.submit(form, "/element/change", step="preview")
        assert "error line 12: there is no connector 'east'" in page.words()
        assert not page.document.xpath("//button[@value='confirmed']")

    play(monkeypatch, nodes, act)


def test_a_node_that_takes_no_changes_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    why = "write `configuration-changes = true` in atalanta.toml"

    async def act(user: Browser) -> None:
        page = await user.get("/configuration/bridge")
        assert not actions(page) and f"one Nothing is added there: {why}" in page.words()
        page = await user.get(BRIDGE)
        assert actions(page) == ["Stop"] and f"one Change: {why}" in page.words()
        page = await user.get("/element/form?do=change&kind=bridge&name=b")
        assert page.status == 400 and why in page.words()

    play(monkeypatch, [FakeNode("one", [bridge()], off=why)], act)


def test_two_operators_do_not_overwrite_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    one = FakeNode("one", [bridge(**{"retry-interval": "500", "forwarding-address": "there"})])

    async def act(user: Browser) -> None:
        form = await user.get("/element/form?do=change&kind=bridge&name=b")
        one.elements = [bridge(**{"retry-interval": "900", "forwarding-address": "there"})]  # by another operator
        given = {"v.forwarding-address": "elsewhere"}
        page = await user.submit(form, "/element/change", step="preview", **given)
        assert "the file has changed since you read it" in page.words() and "+new line" in page.words()
        assert not page.document.xpath("//button[@value='confirmed']")
        page = await user.submit(page, "/element/change", step="form")
        fields = page.fields("/element/change")
        assert fields["v.retry-interval"] == "900" and fields["v.forwarding-address"] == "elsewhere"
        page = await user.submit(page, "/element/change", step="preview")
        page = await user.submit(page, "/element/change", step="confirmed")
        [request] = one.posted("changeConfiguration")
        assert request["changes"][0]["values"] == {"forwarding-address": "elsewhere"}  # type: ignore[index]
        # Between the preview and the confirmation.
        form = await user.get("/element/form?do=change&kind=bridge&name=b")
        page = await user.submit(form, "/element/change", **{"step": "preview", "v.ha": "true"})
        one.elements = [bridge()]
        page = await user.submit(page, "/element/change", step="confirmed")
        assert page.row("one")[1] == "failed" and "-old line" in page.words() and one.elements == [bridge()]

    play(monkeypatch, [one], act)


def test_a_file_that_cannot_be_written_is_a_download(monkeypatch: pytest.MonkeyPatch) -> None:
    one = FakeNode("one/../x", [bridge()], writable=False)

    async def act(user: Browser) -> None:
        form = await user.get("/element/form?do=remove&kind=bridge&name=b")
        page = await user.submit(form, "/element/change", step="preview")
        assert "It would count until the restart: the file is read-only" in page.words()
        page = await user.submit(page, "/element/change", step="confirmed")
        assert "It counts until the restart: the file is read-only" in page.words()
        link = next(each for each in page.links() if each.startswith("/configuration/file?"))
        async with user.session.get(user.address + link.lstrip("/")) as answer:
            assert await answer.text() == "<core/>"
            assert answer.headers["Content-Disposition"] == 'attachment; filename="one_.._x-broker.xml"'
            assert answer.headers["Content-Type"] == "application/octet-stream"
        files = {"file": "broker.xml", "text": "<a/>", "more": [{"file": "../b.xml", "text": "<b/>"}]}
        one.answers["broker", "downloadConfiguration"] = json.dumps(files)
        async with user.session.get(user.address + link.lstrip("/")) as answer:
            with zipfile.ZipFile(io.BytesIO(await answer.read())) as archive:
                assert archive.namelist() == ["broker.xml", "_b.xml"]

    play(monkeypatch, [one], act)


def test_the_last_changes_are_listed_and_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    one = FakeNode("one", [bridge()])

    async def act(user: Browser) -> None:
        form = await user.get("/element/form?do=remove&kind=bridge&name=b")
        page = await user.submit(form, "/element/change", step="preview")
        await user.submit(page, "/element/change", step="confirmed")
        page = await user.get("/changes")
        assert "remove bridge b" in page.words() and "127.0.0.1" in page.words()
        link = next(each for each in page.links() if each.startswith("/changes/undo?"))
        page = await user.get(link)
        assert "Take this change of one back?" in page.words()
        page = await user.submit(page, "/changes/undo")
        assert page.row("one")[1] == "taken back" and one.elements == [bridge()]
        page = await user.get("/changes")
        assert "taken back" in page.words() and "Take back" not in page.words()

    play(monkeypatch, [one], act)


def test_start_and_stop_follow_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    one = FakeNode("one", [bridge()])
    two = FakeNode("two", [{**bridge(), "state": "stopped"}])

    async def act(user: Browser) -> None:
        page = await user.get(BRIDGE)
        assert actions(page) == ["Change", "Remove", "Start", "Stop"]
        form = await user.get("/element/form?do=stop&kind=bridge&name=b")
        page = await user.submit(form, "/element/change", step="confirmed")
        assert page.row("one")[1] == "stopped" and ("bridge.b", "stop", []) in one.asked
        assert ("bridge.b", "stop", []) not in two.asked

    play(monkeypatch, [one, two], act)


def test_an_element_is_added_where_it_is_missing_as_it_is_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = FakeNode("one", [bridge(**{"retry-interval": "5"})]), FakeNode("two")

    async def act(user: Browser) -> None:
        assert actions(await user.get(BRIDGE))[0] == "Add where it is missing"
        form = await user.get("/element/form?do=add&kind=bridge&name=b")
        assert "Not shown and not changed here: password. They are not taken over." in form.words()
        page = await user.submit(form, "/element/change", step="preview")
        await user.submit(page, "/element/change", step="confirmed")
        [request] = two.posted("changeConfiguration")
        values = {"queue-name": "q", "retry-interval": "5", "static-connectors": ["east", "west"]}
        assert request["changes"][0]["values"] == values and not one.posted("changeConfiguration")  # type: ignore[index]

    play(monkeypatch, [one, two], act)


@pytest.mark.parametrize("read_only", [False, True])
def test_who_may_not_change_has_no_buttons_and_is_refused(monkeypatch: pytest.MonkeyPatch, read_only: bool) -> None:
    one = FakeNode("one", [bridge()])

    async def act(user: Browser) -> None:
        for path in ("/configuration", "/configuration/bridge", BRIDGE, "/changes"):
            page = await user.get(path)
            assert page.status == 200 and not actions(page), path
        token = await user.token()
        base = {"form_token": token, "kind": "bridge", "name": "b"}
        for do, step in (("remove", "preview"), ("remove", "confirmed"), ("stop", "confirmed"), ("add", "confirmed")):
            page = await user.post("/element/change", {**base, "do": do, "step": step, "v.queue-name": "q", "node": ""})
            if read_only:
                assert page.status == 403 and "only reads" in page.words()
        assert one.elements == [bridge()] and not one.changes
        if not read_only:
            page = await user.post("/element/change", {**base, "do": "remove", "step": "preview"})
            assert page.status == 403
            assert "permission edit on mops.broker.previewConfiguration is missing" in page.words()
            page = await user.post("/element/change", {**base, "do": "stop", "step": "confirmed"})
            assert "permission edit on mops.bridge.b.stop is missing" in page.words()
        data = {"form_token": token, "node": "id-one", "id": "1", "digest": ""}
        assert (await user.post("/changes/undo", data)).status == (403 if read_only else 404)
        assert (await user.post("/element/undo", {"form_token": token, "id": "x"})).status in (403, 404)

    user = "admin" if read_only else "viewer"
    play(monkeypatch, [one], act, user, read_only)


def test_a_node_that_does_not_answer_hides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    two = FakeNode("two", answers={("broker", "listConfiguration"): "no JSON"})
    three = FakeNode("three")
    address = "mops.broker.listConfiguration"
    three.answers["broker", "listConfiguration"] = ManagementFailed("broker", "x", refused("admin", address))

    async def act(user: Browser) -> None:
        page = await user.get("/configuration/bridge")
        assert page.row("b") and "two the answer to listConfiguration is not JSON" in page.words()
        assert address in page.words()

    play(monkeypatch, [FakeNode("one", [bridge()]), two, three], act)


def test_a_discovery_group_shows_whom_it_hears(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = [{"nodeID": "n", "connector": "c", "address": "h:1", "heardAt": 1_764_500_000_000, "lapsesAt": 0}]
    one = FakeNode("one", [element("discovery-group", "d", state="started", used_by=["cluster-connection c"])])
    one.answers["discoverygroup.d", "listHeardNodes"] = json.dumps(heard)

    async def act(user: Browser) -> None:
        page = await user.get("/element?kind=discovery-group&name=d")
        assert "Nodes that are heard" in page.words() and "h:1 c n 2025-11-30" in page.words()
        assert "cluster-connection c" in page.words() and "Start" not in actions(page)

    play(monkeypatch, [one], act)


ARTEMIS = {
    ("broker", "BridgeNames"): ["b", "mine"],
    ("bridge.b", "QueueName"): "q",
    ("bridge.b", "StaticConnectors"): ["east", "west"],
    ("bridge.b", "Started"): True,
    ("bridge.mine", "QueueName"): "r",
    ("bridge.mine", "Started"): False,
    ("broker", "ConnectorsAsJSON"): json.dumps(
        [{"name": "east", "params": {"host": "h", "port": "1", "trustStorePassword": "p"}}]
    ),
    ("broadcastgroup.g", "GroupAddress"): "231.7.7.7",
    ("broadcastgroup.g", "Started"): True,
    ("broker", "DivertNames"): ["d"],
    ("divert.d", "Address"): "from",
    ("divert.d", "ForwardingAddress"): "to",
    ("divert.d", "Filter"): "a = 1",
    ("broker", "getRolesAsJSON"): '[{"name": "amq", "send": true, "consume": false}]',
    ("broker", "updateDivert"): None,
    ("broker", "createBridge"): None,
    ("broker", "destroyBridge"): None,
    ("bridge.b", "stop"): None,
}


def test_a_real_artemis_is_shown_as_far_as_its_management_reaches(monkeypatch: pytest.MonkeyPatch) -> None:
    one = FakeNode("one", [bridge(), element("broadcast-group", "g"), element("security-setting", "a.#")])
    artemis = FakeNode("artemis", ours=False, answers=dict(ARTEMIS))

    async def act(user: Browser) -> None:
        page = await user.get("/configuration/bridge")
        assert page.row("mine")[1] == "stopped" and page.row("b")[2] == "the same at 2 nodes"
        page = await user.get(BRIDGE)
        assert "artemis Change: Artemis cannot change a bridge at run time" in page.words()
        assert page.row("static-connectors")[1:3] == ["east west"] * 2
        form = await user.get("/element/form?do=change&kind=bridge&name=b")
        assert form.document.xpath("//option[text()='one']") and not form.document.xpath("//option[text()='artemis']")
        page = await user.get("/configuration/discovery-group")
        assert "artemis The management of Artemis tells nothing of discovery groups." in page.words()
        page = await user.get("/configuration/broadcast-group")
        assert "artemis Artemis does not list them" in page.words() and page.row("g")[1] == "started"
        page = await user.get("/element?kind=connector&name=east")
        assert page.row("trustStorePassword")[1] == "hidden" and page.row("host")[1] == "h"
        page = await user.get("/element?kind=security-setting&name=a.%23")
        assert page.row("send")[1:3] == ["amq", ""]  # artemis, one

    play(monkeypatch, [one, artemis], act)


def test_a_real_artemis_is_changed_by_its_own_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    artemis = FakeNode("artemis", ours=False, answers=dict(ARTEMIS))

    async def act(user: Browser) -> None:
        form = await user.get("/element/form?do=add&kind=bridge")
        given = {"name": "x", "v.queue-name": "q", "v.static-connectors": "east", "v.filter": "a = 1"}
        page = await user.submit(form, "/element/change", step="preview", **given)
        assert "bridge x is made by createBridge" in page.words()
        assert "Artemis changes no file by management" in page.words()
        page = await user.submit(page, "/element/change", step="confirmed")
        assert page.row("artemis")[1] == "added" and "keeps no changes" in page.words()
        assert not page.document.xpath("//form[contains(@action, 'undo')]")
        form = await user.get("/element/form?do=change&kind=divert&name=d")
        page = await user.submit(form, "/element/change", **{"step": "preview", "v.forwarding-address": "new"})
        await user.submit(page, "/element/change", step="confirmed")
        assert (await user.get("/element/form?do=change&kind=bridge&name=b")).status == 400
        form = await user.get("/element/form?do=stop&kind=bridge&name=b")
        await user.submit(form, "/element/change", step="confirmed")
        assert ("bridge.b", "stop", []) in artemis.asked

    play(monkeypatch, [artemis], act)
    [request] = artemis.posted("createBridge")
    assert request == {"name": "x", "queue-name": "q", "filter-string": "a = 1", "static-connectors": ["east"]}
    [request] = artemis.posted("updateDivert")
    assert request == {"name": "d", "address": "from", "forwarding-address": "new", "filter-string": "a = 1"}


def test_links_that_make_no_sense_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(user: Browser) -> None:
        for path in (
            "/configuration/..%2f..%2fetc%2fpasswd", "/configuration/__class__", "/element", "/element?kind=bridge",
            "/element?kind=bridge&name=..%2f..%2fx", "/element/form?do=x&kind=bridge&name=b", "/element/form",
            "/element/form?do=start&kind=divert&name=b", "/configuration/file?node=..%2fx", "/changes/undo",
            "/changes/undo?node=id-one&id=..%2f1", "/element/form?do=change&kind=bridge&name=none",
            "/configuration/ha-groups/x",
        ):  # fmt: skip
            page = await user.get(path)
            assert page.status in (400, 404), (path, page.status)
        token = await user.token()
        for fields in (
            {}, {"do": "add", "kind": "bridge", "name": "a\nb"}, {"do": "add", "kind": "bridge", "name": "x" * 600},
            {"do": "remove", "kind": "bridge", "name": "b", "node": "nowhere"},
            {"do": "change", "kind": "bridge", "name": "b", "v.ha": "perhaps"},
        ):  # fmt: skip
            page = await user.post("/element/change", {"form_token": token, **fields})
            assert page.status in (200, 400, 404) and "step" not in page.url
            assert not page.document.xpath("//button[@value='confirmed']")

    play(monkeypatch, [FakeNode("one", [bridge()])], act)
