"""The things that every page uses: operators, templates, options. There is one object for the whole console."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from aiohttp import web

from atalanta.console.access.request_guard import (
    NO_STORE,
    SECURITY_HEADERS,
    TRANSPORT_SECURITY,
    RequestGuard,
)
from atalanta.console.operator import Operators, OperatorSession
from atalanta.console.options import ConsoleOptions
from atalanta.console.static_files import static_files
from atalanta.console.view.links import PageLinks
from atalanta.console.view.templates import environment
from atalanta.survey.flow import Flow
from atalanta.web.connections import WebConnections

OPERATOR: Final = web.RequestKey("operator", OperatorSession)  # a request's session
FIELD_MAX: Final = 32_000  # characters of one field of a form, but for the body of a message
FORM_TOKEN: Final = "form_token"
READ_ONLY: Final = "This console only reads (--read-only): nothing was done."


# Makes an SVG document of a cluster.
Draw = Callable[[Flow], str]


class FormRefused(Exception):
    """A form that cannot be carried out; the text says what to change."""


class ConsoleDesk:
    """The console's shared things."""

    def __init__(
        self,
        options: ConsoleOptions,
        operators: Operators,
        guard: RequestGuard,
        connections: WebConnections,
        port: int,
        draw: Draw | None = None,
    ) -> None:
        self.options = options
        self.connections = connections
        self.draw = draw
        self.operators = operators
        self.guard = guard
        self.links = PageLinks(options.base_path())
        self.port = port
        assets = {name: file.digest for name, file in static_files().items()}
        self._templates = environment(self.links, assets)

    # -- pages ----------------------------------------------------------------------------------
    def page(self, request: web.Request, template: str, /, **values: object) -> web.Response:
        """Returns a page made of a template."""
        return self.answer(200, request, template, **values)

    def answer(self, code: int, request: web.Request, template: str, /, **values: object) -> web.Response:
        """Returns a page with a status of its own."""
        text = self._rendered(request, template, **values)
        return web.Response(text=text, status=code, content_type="text/html", charset="utf-8")

    def part(self, request: web.Request, template: str, /, **values: object) -> str:
        """Returns the content of a page without what stands around it, for a stream."""
        return self._rendered(request, template, layout="bare.html", **values)

    def _rendered(self, request: web.Request, template: str, /, **values: object) -> str:
        operator = request.get(OPERATOR)
        shared = {
            "user": operator.user if operator is not None else "",
            "form_token": operator.browser.form_token if operator is not None else "",
            "jobs_running": 0 if operator is None else sum(not job.is_over for job in operator.jobs.newest()),
            "read_only": self.options.read_only,
            "here": request.path,
        }
        return self._templates.get_template(template).render({**shared, **values})

    def moved(self, path: str, **parameters: object) -> web.Response:
        """Returns the answer that leads the browser to a page, after a form."""
        return web.Response(status=303, headers={"Location": self.links.to(path, **parameters)})

    def check_writable(self) -> None:
        """Refuses what a console that only reads does not do."""
        if self.options.read_only:
            raise web.HTTPForbidden(reason=READ_ONLY)

    def secure(self, request: web.Request, response: web.StreamResponse) -> None:
        """Adds the headers that tell the browser what the answer may do. Those that it has already stay."""
        for name, value in SECURITY_HEADERS.items():
            response.headers.setdefault(name, value)
        response.headers.setdefault("Cache-Control", NO_STORE)
        if self.guard.is_secure(request.host):
            response.headers["Strict-Transport-Security"] = TRANSPORT_SECURITY

    # -- cookies --------------------------------------------------------------------------------
    def cookie_name(self, request: web.Request) -> str:
        """Returns the session cookie's name: browsers keep the promises of its prefix.

        Cookies without TLS belong to a host with all its ports: the port keeps two consoles apart.
        """
        if self.guard.is_secure(request.host):
            return "__Secure-atalanta" if self.links.base else "__Host-atalanta"
        return f"atalanta_console_{self.port}"

    def set_cookie(self, request: web.Request, response: web.StreamResponse, name: str, value: str) -> None:
        """Sets a cookie that no script reads and no other site sends; it ends with the browser."""
        response.set_cookie(
            name,
            value,
            path=self.links.base or "/",
            httponly=True,
            samesite="Strict",
            secure=self.guard.is_secure(request.host),
        )

    def drop_cookie(self, request: web.Request, response: web.StreamResponse, name: str) -> None:
        """Removes a cookie."""
        secure = self.guard.is_secure(request.host)
        response.del_cookie(name, path=self.links.base or "/", secure=secure, httponly=True, samesite="Strict")

    def peer(self, request: web.Request) -> str:
        """Returns the address that the request comes from."""
        return self.guard.peer(request.remote or "", request.headers.get("X-Forwarded-For", ""))


def operator_of(request: web.Request) -> OperatorSession:
    """Returns the session of a request. Only pages that need a log-in are called with one."""
    operator: OperatorSession | None = request.get(OPERATOR)
    if operator is None:
        raise web.HTTPForbidden(text="not logged in")
    return operator


async def form_of(request: web.Request) -> Mapping[str, str]:
    """Returns the fields of a form that are texts, each by its name; of several with one name the last counts."""
    fields = await request.post()
    return {name: value for name, value in fields.items() if isinstance(value, str)}


def one(values: Mapping[str, str], name: str, length: int = FIELD_MAX) -> str:
    """Returns a field of a form or a parameter of a URL, "" without it. FormRefused for one that is too long."""
    value = values.get(name, "")
    if len(value) > length:
        raise FormRefused(f"{name} is longer than {length:,} characters")
    return value
