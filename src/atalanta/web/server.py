"""The node's HTTP server: `/metrics` for Prometheus, `/health/live` and `/health/ready` for process managers.

The server runs in the node's event loop, on aiohttp. It changes nothing and requires no login. So its address
must be reachable only for users who may read names and sizes of queues.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from itertools import chain
from typing import Final

from aiohttp import web

from atalanta.management.management import ManagementService
from atalanta.management.metrics_text import head
from atalanta.management.status import PassiveStatus
from atalanta.web.connections import CONNECTION_S, WebConnection, WebConnections

METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
SCRAPES_MAX: Final = 4  # at the same time; further ones get status 503
OWN: Final = "atalanta_"
ROLES: Final = ("active", "passive")
REQUEST_BYTES_MAX: Final = 4_096
STOP_S: Final = 1.0

log = logging.getLogger("atalanta.web")


class WebServer:
    """Serves HTTP on host:port between `start` and `stop`. Without a node only the health paths have content."""

    def __init__(self, management: ManagementService | None, host: str, port: int) -> None:
        self._management = management
        self._host = host
        self._port = port
        self.network_lost = False  # the reason why there is no node
        self.role = ""  # "active" or "passive", of a process of a pair or group
        self._passive: PassiveStatus | None = None  # while it is passive
        self._role_changes = 0
        self._started = False
        self._scrapes = 0
        self.address = ""  # host:port, after the start
        self._connections = WebConnections()
        self._listener: asyncio.Server | None = None
        application = web.Application(
            client_max_size=REQUEST_BYTES_MAX, middlewares=[self._timed]
        )
        application.router.add_get("/metrics", self.metrics)
        application.router.add_get("/health/live", self.live)
        application.router.add_get("/health/ready", self.ready)
        self._runner = web.AppRunner(
            application,
            access_log=None,
            handle_signals=False,
            keepalive_timeout=CONNECTION_S,
            shutdown_timeout=STOP_S,
        )

    async def start(self) -> str:
        """Binds the port and returns the address. OSError if it cannot be bound."""
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(self._accepted, self._host, self._port)
        host, port = self._listener.sockets[0].getsockname()[:2]
        self._started = True
        self.show(self._management)
        place = f"{host}:{port}"
        log.info(
            "web_started address=%s",
            place,
            extra={"event": "web_started", "fields": {"address": place}},
        )
        self.address = f"{host}:{port}"
        return self.address

    async def stop(self) -> None:
        """Closes every connection."""
        self._started = False
        self.show(self._management)
        if self._listener is not None:
            self._listener.close()
        await self._runner.cleanup()

    def _accepted(self) -> asyncio.Protocol:
        server = self._runner.server
        assert server is not None
        return WebConnection(self._connections, server())

    @web.middleware
    async def _timed(
        self,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        """Gives the connection new time after each request."""
        try:
            return await handler(request)
        finally:
            self._connections.renew(request.protocol)

    def show(self, management: ManagementService | None) -> None:
        """Sets the node that serves from now on, None for none."""
        self._management = management
        if management is not None:
            management.status.web_started = self._started

    def network_changed(self, lost: bool) -> None:
        """Records whether the network is lost, for `/health/ready`."""
        self.network_lost = lost

    async def live(self, request: web.Request) -> web.Response:
        """Answers 200 while the process runs."""
        return web.json_response({"status": "live"})

    async def ready(self, request: web.Request) -> web.Response:
        """Answers 503 until clients are served, and again from the beginning of a stop."""
        if self._management is None:
            away = {"ready": False, "network_lost": self.network_lost, **self._role(), **self._passive_attributes()}
            return web.json_response(away, status=503)
        readiness = {
            **self._management.readiness(),
            "network_lost": self.network_lost,
            **self._role(),
        }
        return web.json_response(readiness, status=200 if readiness["ready"] else 503)

    def _role(self) -> dict[str, object]:
        return {"role": self.role} if self.role else {}

    def role_changed(self, role: str) -> None:
        """Records the role of this process in its pair or group, for `/health/ready` and the metrics."""
        if role != self.role:
            self._role_changes += bool(self.role)
            self.role = role
            self._passive = None

    def show_passive(self, status: PassiveStatus) -> None:
        """Records how far this passive process is, for `/health/ready` and the metrics."""
        self._passive = status

    def _passive_attributes(self) -> dict[str, object]:
        status = self._passive
        if status is None:
            return {}
        why = {"waits": status.waits} if status.waits else {}
        return {**status.attributes(), **why}

    def _role_figures(self) -> str:
        """Returns the metrics of the role, "" for a process without one."""
        if not self.role:
            return ""
        lines = [head("ha_role", "1 for the role of this process", prefix=OWN)]
        lines += [f'{OWN}ha_role{{role="{each}"}} {int(each == self.role)}\n' for each in ROLES]
        lines.append(head("ha_role_changes_total", "changes of the role since the start", "counter", OWN))
        lines.append(f"{OWN}ha_role_changes_total {self._role_changes}\n")
        if self._passive is not None:
            lines += passive_figures(self._passive)
        return "".join(lines)

    async def metrics(self, request: web.Request) -> web.StreamResponse:
        """Answers with the metrics, in slices with other work of the event loop between them.

        Those of a passive process are only those of its role. 503 without a node and a role.
        """
        management = self._management
        if management is None and self.role:
            return web.Response(text=self._role_figures(), headers={"Content-Type": METRICS_TYPE})
        if management is None:
            raise web.HTTPServiceUnavailable(text="there is no node now: see /health/ready\n")
        if self._scrapes >= SCRAPES_MAX:
            raise web.HTTPServiceUnavailable(text="too many scrapes at once\n")
        self._scrapes += 1
        response = web.StreamResponse(headers={"Content-Type": METRICS_TYPE})
        try:
            await response.prepare(request)
            for text in chain([self._role_figures()], management.metrics()):
                if text:
                    await response.write(text.encode())
                await asyncio.sleep(0)
            await response.write_eof()
        except ConnectionResetError:
            log.debug("web_scrape_left remote=%s", request.remote)
        finally:
            self._scrapes -= 1
        return response


def passive_figures(status: PassiveStatus) -> list[str]:
    """Returns the metrics of a passive process, under the names that the active node has."""
    figures = [
        ("active", "1 while clients are served", 0),
        ("replica_sync", "1 while a replica is in step", int(status.replica_sync)),
        ("epoch", "takeovers of the shared store or the replicated group so far", status.epoch),
    ]
    lines = [f"{head(name, why)}artemis_{name} {value}\n" for name, why, value in figures]
    lines.append(head("ha_behind_records", "records that this passive process lacks", prefix=OWN))
    lines.append(f"{OWN}ha_behind_records {status.behind}\n")
    return lines
