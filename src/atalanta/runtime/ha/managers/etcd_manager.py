"""The register as one key of etcd, over its JSON gateway (API v3).

Only two calls: a linearizable range, and a transaction that compares the key's mod_revision. No leases, no locks. The
version of the register is the mod_revision of the key.
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import ssl
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from atalanta.ha.register import CompareAndSet, decode_register, encode_register
from atalanta.ha.voter import Outcome
from atalanta.runtime.ha.managers.manager import Found, ManagerAnswer, ManagerUnavailable

ANSWER_SIZE_MAX: Final = 1 << 20
PORT: Final = 2379
# gRPC codes of a token that is missing, has expired, or is older than a change of users and roles.
UNAUTHENTICATED: Final = 16
INVALID_ARGUMENT: Final = 3


class NotSent(Exception):
    """No endpoint could be connected: the request has not left this process."""


class NoAnswer(Exception):
    """The request was sent, and no answer came that says what it has done."""


class TokenRefused(Exception):
    """The request was not carried out, because it needs a fresh token."""


class EtcdManager:
    """The manager `etcd`.

    `endpoints` are URLs (http or https), tried in turn. A failure moves on to the next one: a member that answers may
    still have no leader. `tls` has the certificates of https. With a `user` each connection logs in.
    """

    def __init__(
        self,
        endpoints: Sequence[str],
        key: str,
        user: str = "",
        password: str = "",
        tls: ssl.SSLContext | None = None,
        timeout_s: float = 5.0,
    ) -> None:
        self.endpoints = [urlsplit(each) for each in endpoints]
        if not endpoints or any(
            each.scheme not in ("http", "https") or not each.hostname for each in self.endpoints
        ):
            raise ValueError(f"endpoints of etcd are URLs such as http://host:{PORT}: {endpoints}")
        self.key = _encoded(key.encode())
        self.user = user
        self.password = password
        self.tls = tls
        self.timeout_s = timeout_s
        self._at = 0
        self._token = ""

    async def read(self) -> Found | None:
        """Implements Manager.read."""
        return await asyncio.to_thread(self._read)

    async def compare_and_set(self, request: CompareAndSet) -> ManagerAnswer:
        """Implements Manager.compare_and_set."""
        return await asyncio.to_thread(self._write, request.version, encode_register(request.value))

    async def close(self) -> None:
        """Implements Manager.close."""

    def _read(self) -> Found | None:
        whys = []
        for _ in self.endpoints:
            try:
                answer = self._call("/v3/kv/range", {"key": self.key})
            except (NotSent, NoAnswer, TokenRefused) as error:
                whys.append(str(error))
                continue
            found = answer.get("kvs", [])
            if not found:
                return None
            return Found(int(found[0]["mod_revision"]), decode_register(_decoded(found[0]["value"])))
        raise ManagerUnavailable(f"etcd cannot be read: {'; '.join(whys)}")

    def _write(self, version: int, data: bytes) -> ManagerAnswer:
        compare = {"target": "MOD", "result": "EQUAL", "key": self.key, "mod_revision": str(version)}
        put = {"requestPut": {"key": self.key, "value": _encoded(data)}}
        try:
            answer = self._call("/v3/kv/txn", {"compare": [compare], "success": [put]})
        except (NotSent, NoAnswer, TokenRefused) as error:
            return ManagerAnswer(Outcome.UNKNOWN, why=str(error))
        if not answer.get("succeeded", False):
            return ManagerAnswer(Outcome.CONFLICT)
        return ManagerAnswer(Outcome.DONE, int(answer["header"]["revision"]))

    def _call(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Returns the answer to one request; logs in when that is needed."""
        if not self.user:
            return self._post(path, body)
        if self._token:
            try:
                return self._post(path, body)
            except TokenRefused:  # not carried out: a fresh token, and the same request again
                self._token = ""
        login = self._post("/v3/auth/authenticate", {"name": self.user, "password": self.password})
        self._token = str(login["token"])
        return self._post(path, body)

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        connection = self._connected()
        try:
            headers = {"Content-Type": "application/json"}
            if self._token:
                headers["Authorization"] = self._token
            connection.request("POST", path, json.dumps(body), headers)
            response = connection.getresponse()
            text = response.read(ANSWER_SIZE_MAX)
            answer = json.loads(text)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._at += 1
            why = f"{type(error).__name__}: {error}"
            raise NoAnswer(f"{connection.host}:{connection.port} gave no answer: {why}") from error
        finally:
            connection.close()
        if response.status == http.client.OK and isinstance(answer, dict):
            return answer
        self._at += 1
        said = answer if isinstance(answer, dict) else {}
        why = f"{connection.host}:{connection.port} answers {response.status}: {said.get('error', text[:200])}"
        if said.get("code") == UNAUTHENTICATED or (
            said.get("code") == INVALID_ARGUMENT and "auth" in str(said.get("error"))
        ):
            self._at -= 1
            raise TokenRefused(f"{why} (is the user {self.user or 'missing'} right?)")
        raise NoAnswer(why)

    def _connected(self) -> http.client.HTTPConnection:
        """Returns a connection to the first endpoint that can be connected, beginning with the last good one."""
        whys = []
        for step in range(len(self.endpoints)):
            at = (self._at + step) % len(self.endpoints)
            url = self.endpoints[at]
            host, port = url.hostname or "", url.port or PORT
            connection = http.client.HTTPConnection(host, port, timeout=self.timeout_s)
            if url.scheme == "https":
                context = self.tls or ssl.create_default_context()
                connection = http.client.HTTPSConnection(
                    host, port, timeout=self.timeout_s, context=context
                )
            try:
                connection.connect()
            except OSError as error:
                connection.close()
                whys.append(f"{host}:{port} cannot be connected: {error}")
            else:
                self._at = at
                return connection
        raise NotSent("; ".join(whys))


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _decoded(text: str) -> bytes:
    return base64.b64decode(text)
