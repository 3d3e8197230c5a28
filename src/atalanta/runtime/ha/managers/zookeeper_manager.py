"""The register as one persistent node of ZooKeeper, by kazoo (the extra `zookeeper`).

No ephemeral nodes and no locks. The version of the register is the node's version + 1, so the node must not be deleted
while the group lives. A read begins with sync(), or it could be older than a finished write.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from atalanta.ha.register import CompareAndSet, decode_register, encode_register
from atalanta.ha.voter import Outcome
from atalanta.runtime.ha.managers.manager import Found, ManagerAnswer, ManagerUnavailable

# kazoo writes two lines for each attempt to connect. Whoever calls says once that the manager is away.
log = logging.getLogger("atalanta.zookeeper")
log.setLevel(logging.ERROR)

# How often a lost server is dialled. kazoo's own limit is a minute; a takeover may wait for this.
RETRY_S_MAX: Final = 1.0


@dataclass(frozen=True)
class ZooKeeperTls:
    """PEM files of a TLS connection; `certificate` and `key` are this client's, "" for none."""

    authorities: str
    certificate: str = ""
    key: str = ""


class ZooKeeperManager:
    """The manager `zookeeper`. `hosts` is "host:port,host:port", `path` the node's.

    All calls are made by one thread of its own; kazoo has further ones. With a `user` the node belongs to this user
    (scheme digest). ImportError without kazoo.
    """

    def __init__(
        self,
        hosts: str,
        path: str,
        user: str = "",
        password: str = "",
        tls: ZooKeeperTls | None = None,
        timeout_s: float = 10.0,
    ) -> None:
        import kazoo.client

        self.hosts = hosts
        self.path = path
        self.timeout_s = timeout_s
        retry = {"max_tries": -1, "max_delay": RETRY_S_MAX}
        self._options: dict[str, Any] = {"hosts": hosts, "timeout": timeout_s, "connection_retry": retry, "logger": log}
        if user:
            import kazoo.security

            acl = kazoo.security.make_digest_acl(user, password, all=True)
            self._options.update(auth_data=[("digest", f"{user}:{password}")], default_acl=[acl])
        if tls is not None:
            self._options.update(
                use_ssl=True, ca=tls.authorities, certfile=tls.certificate or None, keyfile=tls.key or None
            )
        self._new_client = kazoo.client.KazooClient
        self._client: Any = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="atalanta-zookeeper")

    async def read(self) -> Found | None:
        """Implements Manager.read."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._read)

    async def compare_and_set(self, request: CompareAndSet) -> ManagerAnswer:
        """Implements Manager.compare_and_set."""
        data = encode_register(request.value)
        return await asyncio.get_running_loop().run_in_executor(
            self._thread, self._write, request.version, data
        )

    async def close(self) -> None:
        """Implements Manager.close."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown()

    def _read(self) -> Found | None:
        from kazoo.exceptions import KazooException, NoNodeError
        from kazoo.handlers.threading import KazooTimeoutError

        try:
            client = self._connected()
            client.sync_async(self.path).get(timeout=self.timeout_s)
            data, stat = client.get_async(self.path).get(timeout=self.timeout_s)
        except NoNodeError:
            return None
        except (KazooException, KazooTimeoutError) as error:
            raise ManagerUnavailable(f"ZooKeeper at {self.hosts} cannot be read: {_why(error)}") from error
        return Found(stat.version + 1, decode_register(data))

    def _write(self, version: int, data: bytes) -> ManagerAnswer:
        from kazoo.exceptions import BadVersionError, KazooException, NodeExistsError, NoNodeError
        from kazoo.handlers.threading import KazooTimeoutError

        try:
            client = self._connected()
            if version:
                stat = client.set_async(self.path, data, version=version - 1).get(timeout=self.timeout_s)
                return ManagerAnswer(Outcome.DONE, stat.version + 1)
            client.create_async(self.path, data, makepath=True).get(timeout=self.timeout_s)
            return ManagerAnswer(Outcome.DONE, 1)
        except (BadVersionError, NodeExistsError, NoNodeError):
            return ManagerAnswer(Outcome.CONFLICT)
        except (KazooException, KazooTimeoutError) as error:
            return ManagerAnswer(Outcome.UNKNOWN, why=f"ZooKeeper at {self.hosts}: {_why(error)}")

    def _connected(self) -> Any:
        """Returns the client; it connects again by itself. KazooTimeoutError if the first connection takes too long, or
        if it has no connection now: kazoo would keep the request, however many there are, and send it at its return.
        """
        from kazoo.handlers.threading import KazooTimeoutError

        if self._client is None:
            client = self._new_client(**self._options)
            client.start(timeout=self.timeout_s)
            self._client = client
        if not self._client.connected:
            raise KazooTimeoutError("not connected")
        return self._client

    def _close(self) -> None:
        if self._client is not None:
            self._client.stop()
            self._client.close()
            self._client = None


def _why(error: Exception) -> str:
    return f"{type(error).__name__} {error}".strip()
