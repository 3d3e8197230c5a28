"""One message through an acceptor, with a client of each protocol that it serves."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass
from typing import Any

import stomp

from atalanta.client import ClientError, Message
from atalanta.client.blocking import Connection, connect

from .classic import Classic
from .shipped import LOCAL, ShippedAcceptor

WAIT_SECONDS = 20.0


class FirstMessage(stomp.ConnectionListener):  # type: ignore[misc]
    """The first text that comes, or the first error, from the thread of stomp.py."""

    def __init__(self) -> None:
        self.came = threading.Event()
        self.text = ""

    def on_message(self, frame: Any) -> None:
        self.text = frame.body
        self.came.set()

    def on_error(self, frame: Any) -> None:
        self.text = f"error: {frame.headers} {frame.body}"
        self.came.set()


@dataclass
class Exchange:
    """Sends a message and receives it at the same acceptor. Without a user its clients name none."""

    classic: Classic
    user: str = ""
    password: str = ""
    queue: str = "walk"

    def __post_init__(self) -> None:
        self._numbers = itertools.count(1)

    def through(self, acceptor: ShippedAcceptor) -> None:
        """AssertionError if a message does not come back, for any protocol of the acceptor that is served."""
        for protocol in acceptor.served:
            number = next(self._numbers)
            if protocol == "CORE":
                found = self.core(acceptor.port, number)
            elif protocol == "STOMP":
                found = self.stomp(acceptor, number)
            else:
                scheme, more = ("ssl", "socket.verifyHostName=false&") if acceptor.tls else ("tcp", "")
                found = self.openwire(f"{scheme}://{LOCAL}:{acceptor.port}?{more}", number)
            assert found == str(number), f"{protocol} at {acceptor.name}: {found!r}"

    def core(self, port: int, number: int) -> str | None:
        return self.crossing(port, port, number)

    def crossing(self, near: int, far: int, number: int) -> str | None:
        """The text that is sent at one port and received at another."""
        with self._connected(near) as here, self._connected(far) as there:
            consumer = there.consumer(self.queue)
            here.producer(self.queue, routing="anycast").send(Message(text=str(number)))
            message = consumer.receive(WAIT_SECONDS)
            if message is None:
                return None
            message.acknowledge()
            return message.text

    def members(self, port: int) -> int:
        """The number of nodes that the one at the port tells of."""
        with self._connected(port) as connection:
            return len(connection.topology)

    def may_manage(self, port: int) -> bool:
        """Whether the user gets an attribute of the node."""
        with self._connected(port) as connection:
            return connection.management().get("broker", "Started") is True

    def logs_in(self, port: int) -> bool:
        try:
            self._connected(port).close()
        except ClientError:
            return False
        return True

    def _connected(self, port: int) -> Connection:
        url = f"tcp://{LOCAL}:{port}?useTopologyForLoadBalancing=false"
        return connect(url, user=self.user or None, password=self.password or None)

    def openwire(self, url: str, number: int) -> str | None:
        named = f"{url}jms.userName={self.user}&jms.password={self.password}"
        self.classic.send(named, f"queue:{self.queue}", range(number, number + 1))
        texts = self.classic.receive(self.classic.consumer(named, f"queue:{self.queue}"), 1)
        self.classic.close_all()
        return texts[0] if texts else None

    def stomp(self, acceptor: ShippedAcceptor, number: int) -> str:
        kind = stomp.WSConnection if acceptor.web_socket else stomp.StompConnection12
        connection = kind([(LOCAL, acceptor.port)], reconnect_attempts_max=1)
        heard = FirstMessage()
        connection.set_listener("walk", heard)
        connection.connect(self.user or None, self.password or None, wait=True)
        # A destination has a prefix in Classic, and none in Artemis.
        place = f"/queue/{self.queue}" if acceptor.classic else self.queue
        connection.send(place, str(number), headers={"destination-type": "ANYCAST"})
        connection.subscribe(place, "1", headers={"subscription-type": "ANYCAST"})
        heard.came.wait(WAIT_SECONDS)
        connection.disconnect()
        return heard.text
