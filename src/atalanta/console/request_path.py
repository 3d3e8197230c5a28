"""The way of every request: headers, host, session, form; then its page, or a page that says what went wrong."""

from __future__ import annotations

import logging
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from atalanta.client import ClientError
from atalanta.console.desk import FORM_TOKEN, OPERATOR, ConsoleDesk, FormRefused, form_of
from atalanta.console.nodes.failures import (
    MalformedAnswer,
    NodeUnreachable,
    NotFound,
    error_text,
    is_away,
    is_login_refused,
    is_missing,
    missing_permission,
)

LOGIN: Final = "/login"
# Log-in and static files; everything else needs a session.
OPEN_PATHS: Final = (LOGIN,)
STATIC: Final = "/static/"


log = logging.getLogger("atalanta.console")


class RequestPath:
    """The middlewares of the console, the outermost first."""

    def __init__(self, desk: ConsoleDesk) -> None:
        self.desk = desk

    def middlewares(self) -> list[Middleware]:
        return [self.with_headers, self.with_errors, self.admitted]

    @web.middleware
    async def with_headers(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Adds the headers that tell the browser what the page may do, to every answer, and gives the connection the
        time of its next request."""
        try:
            response = await handler(request)
        finally:
            self.desk.connections.renew(request.protocol)
        if not response.prepared:
            self.desk.secure(request, response)
        return response

    @web.middleware
    async def with_errors(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Turns what goes wrong into a page: what, where, and what helps."""
        try:
            return await handler(request)
        except web.HTTPException as error:
            return self._error(request, error.status, error.reason)
        except FormRefused as error:
            return self._error(request, 400, str(error))
        except (ClientError, NodeUnreachable, NotFound, MalformedAnswer, OSError) as error:
            return await self._failed(request, error)
        except Exception:
            log.exception("console_page_failed path=%r", request.path)
            return self._error(request, 500, "A fault of the console; its log has more.")

    @web.middleware
    async def admitted(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Lets a request to its page that is for this console, has a session, and a form's token if it has a form."""
        desk = self.desk
        if not desk.guard.knows_host(request.host):
            text = "The console does not know this name of itself: start it with --origin, or use its address.\n"
            return web.Response(status=421, text=text)
        if not request.path.startswith(f"{desk.links.base}/"):
            return web.Response(status=404, text=f"The console is below {desk.links.base}/\n")
        path = request.path.removeprefix(desk.links.base)
        if path.startswith(STATIC):
            return await handler(request)
        operator = desk.operators.find(request.cookies.get(desk.cookie_name(request), ""))
        if operator is not None:
            request[OPERATOR] = operator
        changes = request.method not in ("GET", "HEAD")
        if changes and not desk.guard.comes_from_here(request.host, request.headers):
            return self._error(request, 403, "This form comes from another site: nothing was done.")
        if path in OPEN_PATHS:
            return await handler(request)
        if operator is None:
            if changes or request.headers.get("X-Atalanta-Refresh"):
                return self._error(request, 401, "You are not logged in any more: nothing was done.")
            following = desk.links.inner(request.path_qs)
            ended = "1" if desk.cookie_name(request) in request.cookies else ""
            return desk.moved(LOGIN, next="" if following == "/" else following, ended=ended)
        if changes and not operator.browser.owns_token((await form_of(request)).get(FORM_TOKEN, "")):
            return self._error(request, 403, "This form is not one of this session: nothing was done.")
        return await handler(request)

    async def _failed(self, request: web.Request, error: BaseException) -> web.Response:
        """Returns the page of an error of a node."""
        operator = request.get(OPERATOR)
        if operator is not None and is_login_refused(error):
            # The password has changed, or the user is gone.
            await self.desk.operators.end(operator)
            del request[OPERATOR]
            return self._error(request, 401, "The broker does not accept your password any more: log in again.")
        missing = missing_permission(error)
        if missing is not None:
            return self._error(request, 403, error_text(error), missing)
        if is_missing(error):
            return self._error(request, 404, error_text(error))
        status = 502 if is_away(error) or isinstance(error, MalformedAnswer) else 409
        return self._error(request, status, str(error) if isinstance(error, NodeUnreachable) else error_text(error))

    def _error(self, request: web.Request, status: int, text: str, missing: object = None) -> web.Response:
        return self.desk.answer(status, request, "error.html", status=status, text=text, missing=missing)
