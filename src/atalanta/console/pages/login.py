"""The log-in and the log-out."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import math
import secrets
from typing import Final

from aiohttp import web

from atalanta.client import ManagementFailed, NotAuthorized
from atalanta.console.access.sessions import UserCredentials
from atalanta.console.desk import OPERATOR, ConsoleDesk, form_of, one, operator_of
from atalanta.console.nodes.failures import (
    NodeUnreachable,
    is_login_refused,
    missing_permission,
)
from atalanta.console.operator import LOGINS_AT_ONCE_MAX
from atalanta.console.view.links import own_page

NAME_MAX: Final = 1_024
REFUSAL_S: Final = 0.4  # a refusal takes at least so long
WRONG: Final = "The broker does not accept this user and password."

log = logging.getLogger("atalanta.console")


class LoginPages:
    """The pages that need no log-in."""

    def __init__(self, desk: ConsoleDesk) -> None:
        self.desk = desk
        self._secret = secrets.token_bytes(32)

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/login", self.form),
            web.post("/login", self.log_in),
            web.post("/logout", self.log_out),
        ]

    async def form(self, request: web.Request) -> web.StreamResponse:
        """Shows the form."""
        if request.get(OPERATOR) is not None:
            return self.desk.moved("/")
        return self._form(request, why="Your session has ended: log in again." if "ended" in request.query else "")

    async def log_in(self, request: web.Request) -> web.StreamResponse:
        """Tries the credentials at a node, and opens a session under a new id."""
        fields = await form_of(request)
        entry = request.cookies.get(self._entry_name(request), "")
        if not entry or not hmac.compare_digest(self._token(entry), one(fields, "entry_token")):
            return self._form(request, status=403, why="The form was too old, or came from elsewhere. Try again.")
        user, password = fields.get("user", ""), fields.get("password", "")
        if not user or len(user) > NAME_MAX or len(password) > NAME_MAX:
            return self._form(request, status=400, why="Give a user name and a password.")
        operators = self.desk.operators
        peer = self.desk.peer(request)
        pause_s = operators.throttle.pause_s(user, peer, operators.clock())
        if pause_s > 0 or operators.logins >= LOGINS_AT_ONCE_MAX:
            wait_s = max(1, math.ceil(pause_s))
            why = "Log-ins have failed too often" if pause_s > 0 else "Many log-ins are being tried"
            response = self._form(request, status=429, why=f"{why}: wait {wait_s} s.", user=user)
            response.headers["Retry-After"] = str(wait_s)
            return response
        try:
            operator = await operators.log_in(UserCredentials(user, password, peer), peer)
        except (NotAuthorized, ManagementFailed) as error:
            return await self._refused(request, user, peer, error)
        except NodeUnreachable as error:
            return self._form(request, status=503, why=f"No node answers: {error}", user=user)
        operators.throttle.succeeded(user, peer)
        former = request.get(OPERATOR)
        if former is not None:
            await operators.end(former)
        log.info("console_login user=%r peer=%s", user, peer)
        response = self.desk.moved(own_page(request.query.get("next", "/")))
        self.desk.set_cookie(request, response, self.desk.cookie_name(request), operator.browser.id)
        self.desk.drop_cookie(request, response, self._entry_name(request))
        return response

    async def log_out(self, request: web.Request) -> web.StreamResponse:
        """Ends the session: its connections are closed and its password is forgotten."""
        operator = operator_of(request)
        await self.desk.operators.end(operator)
        response = self.desk.moved("/login")
        self.desk.drop_cookie(request, response, self.desk.cookie_name(request))
        return response

    async def _refused(
        self, request: web.Request, user: str, peer: str, error: NotAuthorized | ManagementFailed
    ) -> web.Response:
        missing = missing_permission(error)
        if is_login_refused(error) or missing is None:
            operators = self.desk.operators
            operators.throttle.failed(user, peer, operators.clock())
            log.warning("console_login_refused user=%r peer=%s", user, peer)
            await asyncio.sleep(REFUSAL_S)
            return self._form(request, status=403, why=WRONG, user=user)
        log.warning("console_login_refused user=%r peer=%s permission=%s", user, peer, missing.permission)
        why = "The password is right, but this user may not look at the broker."
        return self._form(request, status=403, why=why, user=user, missing=missing)

    def _form(
        self, request: web.Request, status: int = 200, why: str = "", user: str = "", missing: object = None
    ) -> web.Response:
        """Returns the form with a fresh cookie and the token that belongs to it: another site cannot log anybody in."""
        entry = secrets.token_urlsafe(24)
        following = own_page(request.query.get("next", "/"))
        response = self.desk.answer(
            status, request, "login.html", why=why, name=user, missing=missing, following=following,
            entry_token=self._token(entry),
        )  # fmt: skip
        self.desk.set_cookie(request, response, self._entry_name(request), entry)
        return response

    def _token(self, entry: str) -> str:
        return hmac.new(self._secret, entry.encode("utf-8", "replace"), hashlib.sha256).hexdigest()

    def _entry_name(self, request: web.Request) -> str:
        return f"{self.desk.cookie_name(request)}_entry"
