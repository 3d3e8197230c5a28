"""Who gets in: log-in, sessions, forms of other sites, names of the console; each as an attacker would try it."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from yarl import URL

from atalanta.console.access.request_guard import SECURITY_HEADERS
from atalanta.console.access.sessions import ABSOLUTE_S, IDLE_S
from atalanta.console.server import ConsoleServer
from tests.console.conftest import TwoNodes
from tests.console.console_rig import Browser, browser, logged_in, served

pytestmark = pytest.mark.process


def paths_of(server: ConsoleServer, method: str) -> list[str]:
    application = server.application()
    return sorted(
        str(route.resource.canonical)
        for route in application.router.routes()
        if route.method == method and route.resource is not None
    )


def test_no_page_and_no_operation_without_a_login(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        async with served(two_nodes.first) as server, browser(server) as stranger:
            for path in [*paths_of(server, "GET"), "/nothing", "/queue?name=x", "//queues", "/static/../queues"]:
                if path in ("/login", "/static/{name}"):
                    continue
                page = await stranger.get(path)
                assert page.url.partition("?")[0].endswith("/login"), path
                assert not page.document.xpath("//nav"), path
            for path in paths_of(server, "POST"):
                page = await stranger.post(path, {"form_token": "x"})
                assert page.status in (401, 403), path
                assert "nothing was done" in page.words() or path == "/login"

    asyncio.run(main())


def test_log_in_and_out(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        async with served(two_nodes.first) as server, browser(server) as user:
            page = await user.get("/queues?sort=messageCount&order=desc")
            page = await user.submit(page, "/login", user="admin", password="secret")
            assert page.url.endswith("/queues?sort=messageCount&order=desc")
            assert "admin" in page.words()
            assert len(server.operators.sessions) == 1
            page = await user.submit(page, "/logout")
            assert page.url.endswith("/login")
            assert len(server.operators.sessions) == 0
            assert (await user.get("/queues")).url.partition("?")[0].endswith("/login")

    asyncio.run(main())


def test_a_wrong_password_and_a_user_without_rights_stay_outside(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        async with served(two_nodes.first) as server, browser(server) as user:
            page = await user.log_in("admin", "wrong")
            assert page.status == 403
            assert "does not accept this user and password" in page.words()
            page = await user.log_in("nobody", "secret")
            assert "does not accept this user and password" in page.words()
            page = await user.log_in("stranger", "secret")
            assert page.status == 403
            assert "permission manage on activemq.management" in page.words()
            assert '<permission type="manage" roles="ROLE"/>' in page.words()
            assert len(server.operators.sessions) == 0
            assert (await user.get("/queues")).url.partition("?")[0].endswith("/login")

    asyncio.run(main())


def test_the_page_that_a_login_leads_to_is_one_of_the_console(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        async with served(two_nodes.first) as server, browser(server) as user:
            for bad in ("https://evil.example/", "//evil.example/", "/\\evil.example", "/queues\r\nSet-Cookie: a=b"):
                user.session.cookie_jar.clear()
                entry = (await user.get("/login")).fields("/login")
                target = str(URL("/login").with_query(next=bad))
                async with user.session.post(
                    URL(server.address).join(URL(target, encoded=True)),
                    data={**entry, "user": "admin", "password": "secret"},
                    allow_redirects=False,
                ) as answer:
                    assert answer.status == 303
                    assert answer.headers["Location"] == "/"
                    assert "a" not in answer.cookies

    asyncio.run(main())


def test_a_session_gets_a_new_id_at_login_and_ends_the_one_before(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        async with served(two_nodes.first) as server, browser(server) as user:
            name = f"atalanta_console_{server.port}"
            user.session.cookie_jar.update_cookies({name: "chosen-by-an-attacker"}, URL(server.address))
            await user.log_in("admin", "secret")
            first = cookie(user, name)
            assert first != "chosen-by-an-attacker" and len(first) > 40
            await user.post("/logout", {"form_token": await user.token()})
            await user.log_in("admin", "secret")
            assert cookie(user, name) != first
            user.session.cookie_jar.update_cookies({name: first}, URL(server.address))
            assert (await user.get("/queues")).url.partition("?")[0].endswith("/login")

    asyncio.run(main())


def cookie(user: Browser, name: str) -> str:
    return next(each.value for each in user.session.cookie_jar if each.key == name)


def test_cookies_are_for_this_console_and_no_script(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        async with served(two_nodes.first, path="/console", origins=["https://ops.example.org"]) as server:
            async with browser(server) as user:
                for host, secure in (("127.0.0.1", False), ("ops.example.org", True)):
                    url = URL(server.address).with_path("/console/login")
                    async with user.session.get(url, headers={"Host": host}) as answer:
                        (text,) = answer.headers.getall("Set-Cookie")
                    assert "HttpOnly" in text and "SameSite=Strict" in text and "Path=/console" in text
                    assert ("Secure" in text) is secure
                    assert text.startswith("__Secure-atalanta" if secure else "atalanta_console_")

    asyncio.run(main())


def test_sessions_end_when_unused_and_when_old(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        async with served(two_nodes.first) as server, browser(server) as user:
            now_s = 1_000.0
            server.operators.clock = lambda: now_s
            await user.log_in("admin", "secret")
            now_s += IDLE_S - 1
            assert (await user.get("/jobs")).url.endswith("/jobs")
            now_s += IDLE_S + 1
            page = await user.get("/jobs")
            assert page.url.partition("?")[0].endswith("/login")
            assert "session has ended" in page.words()
            await server.operators.end_expired()
            assert len(server.operators.sessions) == 0
            await user.log_in("admin", "secret")
            for _ in range(int(ABSOLUTE_S // (IDLE_S - 1)) + 1):
                now_s += IDLE_S - 1
                page = await user.get("/jobs")
            assert page.url.partition("?")[0].endswith("/login")

    asyncio.run(main())


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://127.0.0.1:1", "Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"},
    ],
)
def test_forms_of_other_sites_do_nothing(two_nodes: TwoNodes, headers: dict[str, str]) -> None:
    async def main() -> None:
        async with logged_in(two_nodes.first) as user:
            page = await user.post("/logout", {"form_token": await user.token()}, headers)
            assert page.status == 403 and "nothing was done" in page.words()
            assert (await user.get("/jobs")).url.endswith("/jobs")

    asyncio.run(main())


def test_a_form_needs_the_token_of_its_session(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        async with served(two_nodes.first) as server, browser(server) as one, browser(server) as other:
            await one.log_in("admin", "secret")
            await other.log_in("admin", "secret")
            for token in ("", "x", "\udc80", await other.token()):
                data = aiohttp.FormData({"form_token": token.encode("utf-8", "replace").decode()})
                page = await one.post("/logout", data)
                assert page.status == 403
            assert len(server.operators.sessions) == 2
            # Nothing changes by a GET.
            assert (await one.get(f"/logout?form_token={await one.token()}")).status == 405
            assert (await one.get(f"/nodes/agree?at=x&form_token={await one.token()}")).status == 405

    asyncio.run(main())


def test_another_site_cannot_log_anybody_in(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        async with served(two_nodes.first) as server, browser(server) as user, browser(server) as attacker:
            known = (await attacker.get("/login")).fields("/login")
            page = await user.post("/login", {**known, "user": "admin", "password": "secret"})
            assert page.status == 403 and len(server.operators.sessions) == 0

    asyncio.run(main())


def test_failures_are_slowed_down_by_user_and_peer(two_nodes: TwoNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atalanta.console.pages.login.REFUSAL_S", 0)

    async def main() -> None:
        async with served(two_nodes.first, origins=["http://ops.example.org"]) as server, browser(server) as user:
            for _ in range(5):
                assert (await user.log_in("admin", "wrong")).status == 403
            page = await user.log_in("admin", "secret")
            assert page.status == 429 and int(page.headers["Retry-After"]) > 0
            # Other users of this peer, and this user of another peer, are as fast as ever.
            assert (await user.log_in("viewer", "secret")).status == 200
            async with browser(server, headers={"X-Forwarded-For": "1.2.3.4"}) as elsewhere:
                assert (await elsewhere.log_in("admin", "secret")).status == 200

    asyncio.run(main())


def test_the_console_answers_to_its_own_names_only(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        async with served(two_nodes.first) as server, browser(server) as user:
            for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example"):
                async with user.session.get(f"{server.address}login", headers={"Host": host}) as answer:
                    assert answer.status == 421
            headers = {"Host": f"localhost:{server.port}"}
            async with user.session.get(f"{server.address}login", headers=headers) as answer:
                assert answer.status == 200

    asyncio.run(main())


def test_every_answer_has_the_headers(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        async with logged_in(two_nodes.first) as user:
            for path in ("/", "/login", "/queues", "/nothing", "/static/console.css", "/static/none", "/queue?name=x"):
                page = await user.get(path, allow_redirects=False)
                for name, value in SECURITY_HEADERS.items():
                    assert page.headers[name] == value, (path, name)
                assert page.headers["Cache-Control"] == ("public, max-age=600" if "css" in path else "no-store")
                # Nothing inline: the policy would refuse it.
                assert not page.document.xpath("//script[not(@src)] | //style | //*[@style] | //*[@onclick]")

    asyncio.run(main())


@pytest.mark.parametrize(
    "name", ["../base.html", "..%2Fserver.py", "%2e%2e/%2e%2e/desk.py", "none.css", "console.css/"]
)
def test_static_files_are_those_of_the_list(two_nodes: TwoNodes, name: str) -> None:
    async def main() -> None:
        async with served(two_nodes.first) as server, browser(server) as user:
            url = URL(f"{server.address}static/{name}", encoded=True)
            async with user.session.get(url, allow_redirects=False) as answer:
                assert answer.status in (303, 404)
                assert "import" not in await answer.text()

    asyncio.run(main())


def test_below_a_path_every_link_begins_with_it(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        async with logged_in(two_nodes.first, path="/console") as user:
            for path in ("/", "/queues", "/addresses", "/connections", "/jobs", "/queue?name=none"):
                page = await user.get(path)
                found = page.document.xpath("//@href | //@src | //@action")
                wrong = [link for link in map(str, found) if not link.startswith(("/console/", "#"))]
                assert not wrong, path
            async with user.session.get(URL(user.address).with_path("/queues")) as answer:
                assert answer.status == 404

    asyncio.run(main())


def test_a_password_is_in_no_text(two_nodes: TwoNodes) -> None:
    async def main() -> None:
        async with served(two_nodes.first) as server, browser(server) as user:
            page = await user.log_in("admin", "secret")
            (operator,) = server.operators._open.values()
            assert "secret" not in repr(operator.browser) + repr(operator.browser.credentials)
            assert "secret" not in page.text
            assert all("secret" not in each.value for each in user.session.cookie_jar)

    asyncio.run(main())
