"""A client that follows the topology of a node for as long as it lives, on a socket of its own."""

from __future__ import annotations

import contextlib
import socket
import threading

from atalanta.wire.core.frames import Framer
from atalanta.wire.core.packet_types import HANDSHAKE, PING_CHANNEL
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.connection import Ping
from atalanta.wire.core.packets.session import CreateSession
from atalanta.wire.core.packets.topology import ClusterTopology, SubscribeTopologyV2

from .jms import PASSWORD, USER
from .node import BrokerProcess

VERSION = 136
SILENCE_MS = 600_000


class TopologyWatch:
    """Keeps what the node tells of its members: `gone` are those that it says have left, `listed` the others."""

    def __init__(self, node: BrokerProcess) -> None:
        self.gone: list[str] = []
        self.listed: dict[str, bool] = {}
        self._socket = socket.create_connection(("127.0.0.1", node.port))
        login = CreateSession("watch", 10, VERSION, USER, PASSWORD)
        frames = [(Ping(SILENCE_MS), PING_CHANNEL), (SubscribeTopologyV2(False, VERSION), PING_CHANNEL), (login, 1)]
        self._socket.sendall(HANDSHAKE + b"".join(codec.encode(packet, channel) for packet, channel in frames))
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        framer = Framer(False)
        with contextlib.suppress(OSError):
            while data := self._socket.recv(65536):
                for frame in framer.feed(data):
                    packet = codec.decode_frame(frame)
                    if isinstance(packet, ClusterTopology) and packet.exit:
                        self.gone.append(packet.node_id)
                        self.listed.pop(packet.node_id, None)
                    elif isinstance(packet, ClusterTopology):
                        self.listed[packet.node_id] = True

    def close(self) -> None:
        """Ends it."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()
