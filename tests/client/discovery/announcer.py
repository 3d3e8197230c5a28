"""Announces fake servers in a UDP group on the loopback interface, as a broadcast group does."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

from atalanta.runtime.net.multicast import Group, sending_socket
from atalanta.wire.core.broadcast_datagram import Announcement, encode_announcement
from atalanta.wire.core.transport import TransportConfiguration
from tests.wire.core.client.fake_broker import PASSWORD

ADDRESS = "231.7.7.78"
LOCAL = "127.0.0.1"
PERIOD_S = 0.02


class Announcer:
    """`ports` by node id: what is announced now."""

    def __init__(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind((LOCAL, 0))
            self.port = int(probe.getsockname()[1])
        self.ports: dict[str, int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def url(self, options: str = "") -> str:
        always = f"localBindAddress={LOCAL}&user=u&password={PASSWORD}"
        return f"udp://{ADDRESS}:{self.port}?{always}" + (f"&{options}" if options else "")

    def _run(self) -> None:
        with sending_socket(Group("announcer", ADDRESS, self.port, LOCAL, -1)) as sender:
            while not self._stop.wait(PERIOD_S):
                for node_id, port in list(self.ports.items()):
                    connectors = [TransportConfiguration.tcp(node_id, LOCAL, port)]
                    data = encode_announcement(Announcement(node_id, "unique", connectors))
                    sender.sendto(b"no announcement", (ADDRESS, self.port))
                    sender.sendto(data, (ADDRESS, self.port))


@contextlib.contextmanager
def announcing() -> Iterator[Announcer]:
    announcer = Announcer()
    announcer._thread.start()
    try:
        yield announcer
    finally:
        announcer._stop.set()
        announcer._thread.join(10)
