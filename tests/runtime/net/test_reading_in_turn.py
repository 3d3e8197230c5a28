"""Reading in turn: a peer that always has more to say gets its share of an iteration, not all of it."""

from __future__ import annotations

import asyncio
import socket
import threading
import time

from atalanta.runtime.net.acceptor import Listen
from atalanta.runtime.process.event_loop import run
from atalanta.runtime.shell import Shell
from tests.runtime.net.echo import EchoNode

SENT = 8 << 20
READ_MAX = 256 * 1024  # of uvloop and asyncio


class CountingNode(EchoNode):
    """Counts the bytes of each turn by connection, works for a while on each input, and answers nothing."""

    def __init__(self, shell: Shell) -> None:
        super().__init__(shell)
        self.turn: dict[int, int] = {}
        self.most = 0
        self.total = 0

    def on_data(self, now: int, conn: int, data: bytes) -> None:
        self.turn[conn] = self.turn.get(conn, 0) + len(data)
        self.most = max(self.most, self.turn[conn])
        self.total += len(data)
        time.sleep(0.002)  # the sender fills its socket meanwhile

    def flush(self, now: int) -> None:
        self.turn.clear()


def test_a_turn_has_one_read_of_a_connection_that_always_has_more() -> None:
    async def main() -> CountingNode:
        shell = Shell(asyncio.get_running_loop())
        node = CountingNode(shell)
        shell.driver.attach(node)
        shell.bind([Listen("a", "127.0.0.1", 0)])
        acceptor = shell.acceptors[0]
        await acceptor.accept()
        port = int(acceptor.addresses[0].rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as peer:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
            sender = threading.Thread(target=peer.sendall, args=[bytes(SENT)], daemon=True)
            sender.start()
            while node.total < SENT:
                await asyncio.sleep(0.001)
            sender.join()
        acceptor.close()
        return node

    node = run(main())
    assert node.total == SENT
    assert node.most <= READ_MAX
