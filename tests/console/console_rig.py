"""A console in the test's process, and a browser for it: forms are filled in as they stand on the page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urljoin

import aiohttp
from lxml import html

from atalanta.cli.cluster.svg import svg_of
from atalanta.console.options import ConsoleOptions
from atalanta.console.server import ConsoleServer


@dataclass
class Page:
    """An answer of the console."""

    status: int
    url: str
    text: str
    headers: Mapping[str, str]
    document: html.HtmlElement = field(repr=False)

    def form(self, action: str) -> html.FormElement:
        """Returns the form whose action ends with this path (its query left out)."""
        for form in self.document.forms:
            if (form.get("action") or "").partition("?")[0].endswith(action):
                return form
        raise AssertionError(f"no form {action} on {self.url}:\n{self.words()}")

    def fields(self, action: str) -> dict[str, str]:
        """Returns the fields of a form with what they have."""
        return {name: str(value) for name, value in self.form(action).form_values()}

    def words(self) -> str:
        """Returns the text of the page without markup."""
        return spaced(self.document)

    def row(self, first: str) -> list[str]:
        """Returns the cells of the table row that begins with this text."""
        for row in self.document.iter("tr"):
            cells = [spaced(cell) for cell in row]
            if any(cell == first or cell.startswith(f"{first} ") for cell in cells[:2]):
                return cells
        raise AssertionError(f"no row {first} on {self.url}:\n{self.words()}")

    def links(self) -> list[str]:
        return [str(link) for link in self.document.xpath("//a/@href")]


class Browser:
    """A browser with its cookies."""

    def __init__(self, address: str, session: aiohttp.ClientSession) -> None:
        self.address = address
        self.session = session

    async def get(self, path: str, **options: object) -> Page:
        """Follows a link."""
        async with self.session.get(urljoin(self.address, path.lstrip("/")), **options) as answer:  # type: ignore[arg-type]
            return await page_of(answer)

    async def post(self, path: str, data: object, headers: Mapping[str, str] | None = None) -> Page:
        """Sends a form. A browser names the page's origin; `headers` are further or others."""
        origin = "/".join(self.address.split("/")[:3])
        given = {"Origin": origin, "Sec-Fetch-Site": "same-origin", **(headers or {})}
        url = urljoin(self.address, path.lstrip("/"))
        async with self.session.post(url, data=data, headers=given) as answer:
            return await page_of(answer)

    async def submit(self, page: Page, action: str, **fields: str) -> Page:
        """Fills in a form of the page and sends it."""
        form = page.form(action)
        target = str(form.get("action"))
        return await self.post_to(target, {**page.fields(action), **fields})

    async def post_to(self, target: str, data: object) -> Page:
        """Sends a form to an address as it stands in the form."""
        origin = "/".join(self.address.split("/")[:3])
        headers = {"Origin": origin, "Sec-Fetch-Site": "same-origin"}
        async with self.session.post(urljoin(self.address, target), data=data, headers=headers) as answer:
            return await page_of(answer)

    async def log_in(self, user: str, password: str) -> Page:
        """Logs in by the form."""
        return await self.submit(await self.get("/login"), "/login", user=user, password=password)

    async def token(self) -> str:
        """Returns the session's token of forms."""
        return (await self.get("/jobs")).fields("/logout")["form_token"]


def spaced(element: html.HtmlElement) -> str:
    """Returns the text of an element, with a blank between its parts."""
    return " ".join(" ".join(map(str, element.itertext())).split())


async def page_of(answer: aiohttp.ClientResponse) -> Page:
    text = await answer.text()
    document = html.document_fromstring(text or "<html></html>")
    return Page(answer.status, str(answer.url), text, answer.headers, document)


@asynccontextmanager
async def served(*nodes: str, **options: object) -> AsyncIterator[ConsoleServer]:
    """A console for these nodes."""
    given = ConsoleOptions(nodes=list(nodes), listen="127.0.0.1:0", **options)  # type: ignore[arg-type]
    server = ConsoleServer(given, svg_of)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@asynccontextmanager
async def browser(server: ConsoleServer, **options: object) -> AsyncIterator[Browser]:
    """A browser without a session."""
    jar = aiohttp.CookieJar(unsafe=True)  # cookies of an address
    async with aiohttp.ClientSession(cookie_jar=jar, **options) as session:  # type: ignore[arg-type]
        yield Browser(server.address, session)


@asynccontextmanager
async def logged_in(
    *nodes: str, user: str = "admin", password: str = "secret", **options: object
) -> AsyncIterator[Browser]:
    """A browser with a session of a user, at a console of its own."""
    async with served(*nodes, **options) as server, browser(server) as found:
        page = await found.log_in(user, password)
        assert page.status == 200, page.words()
        yield found
