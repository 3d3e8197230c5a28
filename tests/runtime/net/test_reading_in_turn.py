"""Reading in turn: a peer that always has more to say gets its share of an iteration, not all of it."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from contextlib import ExitStack

import pytest

from atalanta.runtime.net.acceptor import Listen
from atalanta.runtime.process.event_loop import run
from atalanta.runtime.shell import Shell
from tests.runtime.net.echo import EchoNode

SENT = 4 << 20
READ_MAX = 256 * 1024  # of uvloop and asyncio


class CountingNode(EchoNode):
    """Counts the bytes of each turn, works for a while on each input, and answers nothing."""

    def __init__(self, shell: Shell) -> None:
        super().__init__(shell)
        self.turn = 0
        self.turns: list[int] = []
        self.total = 0

    def on_data(self, now: int, conn: int, data: bytes) -> None:
        self.turn += len(data)
        self.total += len(data)
        time.sleep(0.021)  # longer than all full reads of a turn may take; the sender fills its socket meanwhile

    def flush(self, now: int) -> None:
        self.turns.append(self.turn)
        self.turn = 0


@pytest.mark.parametrize("peers", [1, 8])
def test_a_turn_has_few_reads_of_connections_that_always_have_more(peers: int) -> None:
    async def main() -> CountingNode:
        shell = Shell(asyncio.get_running_loop())
        node = CountingNode(shell)
        shell.driver.attach(node)
        shell.bind([Listen("a", "127.0.0.1", 0)])
        acceptor = shell.acceptors.open["a"]
        await acceptor.accept()
        port = int(acceptor.addresses[0].rpartition(":")[2])
        with ExitStack() as stack:
            senders = []
            for _ in range(peers):
                peer = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
                senders.append(threading.Thread(target=peer.sendall, args=[bytes(SENT)], daemon=True))
                senders[-1].start()
            while node.total < peers * SENT:
                await asyncio.sleep(0.001)
            for sender in senders:
                sender.join()
        acceptor.close()
        return node

    node = run(main())
    assert node.total == peers * SENT
    # A turn measures from the end of its first full read, so it may have two long ones.
    assert max(node.turns) <= 2 * READ_MAX * peers
    turns = sorted(filter(None, node.turns))
    assert turns[len(turns) * 3 // 4] <= 2 * READ_MAX
