"""Script, markup and tricks by everything that a client can name: all of it is text on the page."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Iterator
from xml.sax.saxutils import escape

import pytest

from atalanta.client import Message, connect
from atalanta.console.access.request_guard import SECURITY_HEADERS
from atalanta.console.nodes.actions import ACTIONS
from atalanta.console.nodes.messages import read_row
from tests.broker_process import BrokerProcess
from tests.broker_xml import permissions, write_broker_xml, write_users
from tests.console.attack_texts import SCRIPT, TURNED, harmless
from tests.console.conftest import TwoNodes
from tests.console.console_rig import Browser, browser, logged_in, served
from tests.console.pages.messages_of_nodes import count, fill, texts
from tests.ports import free_port

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
            "JMSType": SCRIPT, "form_token": "x", "content-type": "text/html", "_AMQ_VALIDATED_USER": SCRIPT,
            "NATIVE_MESSAGE_ID": SCRIPT, "__HDR_MESSAGE_ID": SCRIPT, "JMSMessageID": SCRIPT,
        }  # fmt: skip
        for body in (f"<html>{SCRIPT}</html>", f'{{"a": "{SCRIPT[2:]}"}}', "\x00\x1b[2J\u202e", SCRIPT):
            await producer.send(
                Message(
                    text=body,
                    properties=properties,
                    correlation_id=SCRIPT,
                    reply_to=f"queue://{SCRIPT}",
                    group_id=SCRIPT,
                    user_id=uuid.uuid4(),
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
                "/action?do=purge&name=", "/message?id=1&queue=x&node=", "/send?name=", "/login?next=", "/message?id=",
                "/message/body?id=", "/message?as=", "/queue?view=", "/queues?sort=", "/queues?size=",
                "/search?selector=",
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


def test_whoever_announces_a_message_id_gets_a_number_or_nothing() -> None:
    """A node that lies tells the ids of its messages."""
    row = read_row({"messageID": SCRIPT, "timestamp": SCRIPT, "priority": SCRIPT, "userID": SCRIPT, "type": SCRIPT})
    assert (row.id, row.timestamp_ms, row.priority, row.kind) == (0, 0, 0, 0)


# -- names of the configuration -----------------------------------------------------------------------
@pytest.fixture(scope="module")
def named_by_an_attacker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A node whose file has a script in every name, and a user whose name is one; host:port."""
    port = free_port()
    name = escape(SCRIPT, {'"': "&quot;"})
    user = "<script>alert('user')</script>"
    more = f"""{permissions(escape(user) + ",admin")}
    <connectors><connector name="{name}">tcp://127.0.0.1:1</connector></connectors>
    <addresses><address name="{name}"><anycast>
      <queue name="{name}"><filter string="a = '&lt;script&gt;'"/></queue></anycast></address></addresses>
    <diverts><divert name="{name}"><address>{name}</address><forwarding-address>{name}.copy</forwarding-address>
      </divert></diverts>
    <bridges><bridge name="{name}"><queue-name>{name}</queue-name><forwarding-address>{name}</forwarding-address>
      <static-connectors><connector-ref>{name}</connector-ref></static-connectors></bridge></bridges>"""
    folder = tmp_path_factory.mktemp("named")
    xml = write_broker_xml(folder, port, name=name, data=str(folder / "data"), security=True, more=more)
    write_users(xml, {"admin": "secret", user: "secret"}, {"admin": f"admin,{user}"})
    with BrokerProcess(xml, port=port):
        yield f"127.0.0.1:{port}"


def test_names_of_nodes_users_and_what_the_file_names_are_text(named_by_an_attacker: str) -> None:
    async def main() -> None:
        place = named_by_an_attacker
        user = "<script>alert('user')</script>"
        async with (
            logged_in(place, user=user) as page_of,
            connect(f"tcp://{place}?stay=true", user=user, password="secret") as connection,
        ):
            await connection.consumer(SCRIPT)
            page = await page_of.get("/")
            while "being asked" in page.words():
                page = await page_of.get("/")
            assert SCRIPT in page.words() and user in page.words()
            harmless(page)
            links = dict.fromkeys(page.links())
            for link in [*links, "/connections", "/sessions", "/consumers", "/search?q=script"]:
                if link.startswith("/picture"):
                    async with page_of.session.get(page_of.address + link.lstrip("/")) as answer:
                        text = await answer.text()
                    assert "<script" not in text and "onerror" not in text.replace("onerror=alert(1)&gt;", "")
                elif link.startswith("/"):
                    harmless(await page_of.get(link))

    asyncio.run(main())


# -- more than a form is made for ------------------------------------------------------------------------
@pytest.mark.parametrize(
    "operation",
    [
        "createBridge", "destroyBridge", "addConnector", "addNetworkConnector", "createQueue", "destroyQueue",
        "deleteAddress", "forceFailover", "reloadConfigurationFile", "addSecuritySettings", "addUser", "listUser",
        "sendMessage", "send", "__init__", "", "moveMessages", "updateQueue", "closeConnectionsForUser",
    ],
)  # fmt: skip
def test_no_form_names_an_operation_of_management(two_nodes: TwoNodes, operation: str) -> None:
    async def main() -> None:
        async with logged_in(two_nodes.first) as user:
            token = await user.token()
            fields = {"form_token": token, "do": operation, "name": "x", "node": "x", "confirmed": "yes"}
            assert (await user.post("/action", fields)).status == 404

    asyncio.run(main())


def test_a_viewer_is_refused_by_the_node_whatever_the_form(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        await fill(two_nodes.first, "held", texts(3))
        await fill(two_nodes.first, "held.to", [])
        async with logged_in(two_nodes.first, user="viewer") as user:
            page = await user.get("/queue?name=held")
            token, node = await user.token(), page.fields("/queue")["node"]
            link = next(each for each in page.links() if each.startswith("/message?"))
            message_id = link.partition("&id=")[2].partition("&")[0]
            for action in ACTIONS.values():
                fields = {
                    "form_token": token, "do": action.name, "node": node, "confirmed": "yes", "id": message_id,
                    "name": "held", "target": "held.to", "connection": "x", "session": "x", "consumer": "x",
                    "body": "x", "kind": "address" if action.name == "send-to-address" else "",
                }  # fmt: skip
                page = await user.post("/send" if action.name.startswith("send") else "/action", fields)
                assert page.status == 200 and "failed" in page.words(), (action.name, page.words())
                assert "permission edit on mops." in page.words(), (action.name, page.words())
            assert await count(two_nodes.first, "held") == 3 and await count(two_nodes.first, "held.to") == 0

    asyncio.run(main())


def test_paths_lead_nowhere_but_to_pages(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        await fill(two_nodes.first, "../../../etc/passwd", texts(1))
        async with logged_in(two_nodes.first) as user:
            page = await user.get("/queue?name=../../../etc/passwd")
            link = next(each for each in page.links() if each.startswith("/message?"))
            async with user.session.get(user.address + link.replace("/message?", "message/body?")) as answer:
                assert await answer.read() == b"body 0"
                assert "/" not in answer.headers["Content-Disposition"]
            shown = await user.get(f"{link}&as=../../../etc/passwd")
            assert shown.status == 200 and "root:" not in shown.text
            for path in ("/%2e%2e/%2e%2e/etc/passwd", "/queues/..%2f..%2fetc/passwd", "/job?id=../../../etc/passwd"):
                page = await user.get(path)
                assert page.status == 404 and "root:" not in page.text, path

    asyncio.run(main())


def test_what_is_logged_is_one_line(
    two_nodes: TwoNodes, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atalanta.console.pages.login.REFUSAL_S", 0)

    async def main() -> None:
        async with served(two_nodes.first) as server, browser(server) as user:
            await user.log_in("x\nconsole_login user='admin' peer=::1\x1b[31m", "wrong")
        async with logged_in(two_nodes.first) as user:
            fields = {"form_token": await user.token(), "do": "purge", "name": "x\ny", "selector": "a\r\nb"}
            await user.post("/action", fields)
            await user.get("/%0aconsole_login%20user=admin")

    with caplog.at_level(logging.DEBUG, logger="atalanta.console"):
        asyncio.run(main())
    assert caplog.records
    for record in caplog.records:
        assert record.getMessage().isprintable(), record.getMessage()
