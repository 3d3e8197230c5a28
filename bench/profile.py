"""The pure node in this process, no socket, no disk: how long one message takes in each part of it.

CORE frames go through the same code as in a running node, one loop turn of 500 messages at a time, and each stage is
timed by itself. A running node adds the loop and the system calls: compare with CPU a message in RESULTS.md. The
session decodes a message without the packet around it that is timed here: some of "decode" belongs to "route".
"""

from __future__ import annotations

import gc
import os
import sys
import time
from pathlib import Path
from statistics import median

from atalanta.message.message import Message
from atalanta.message.properties import Byte
from atalanta.runtime.process.build import build_name
from atalanta.wire.core.frames import Framer
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.consumer import Acknowledge, CreateConsumer, FlowToken
from atalanta.wire.core.packets.message import ReceiveMessage, SendMessage, decode_send
from bench.profile_node import CHANNEL, NOW, VERSION, ProfiledNode
from bench.results import machine
from bench.settings import CHECKOUT

BATCH = 500
QUEUE = "profile"
PRODUCER, CONSUMER = 1, 2
COLUMNS = {
    "100 B": (100, False),
    "1 KiB": (1024, False),
    "100 B durable": (100, True),
    "1 KiB durable": (1024, True),
}

DECODE = "decode: frames, message"
ROUTE = "route, enqueue, append to the journal if durable"
COMMIT = "journal: block with checksum; confirmations"
DISPATCH = "dispatch, encode the delivery"
ACK = "acknowledge: decode, take out of the queue, append"
ACK_COMMIT = "journal and clean-up after the acknowledgements"
STAGES = (DECODE, ROUTE, COMMIT, DISPATCH, ACK, ACK_COMMIT)


class Profile:
    """One kind of message, sent and consumed by two connections in turns of `BATCH`."""

    def __init__(self, size: int, durable: bool) -> None:
        self._rig = ProfiledNode(QUEUE)
        self._sends = b"".join(_send(size, durable, number) for number in range(BATCH))
        self._rig.connect(PRODUCER)
        self._rig.connect(CONSUMER)
        self._rig.send(CONSUMER, CreateConsumer(consumer_id=0, queue=QUEUE))
        self._rig.settle()
        self._rig.send(CONSUMER, FlowToken(0, -1))
        self._rig.settle()
        self._rig.wire.take(CONSUMER)

    def turn(self) -> dict[str, float]:
        """One batch through all stages: nanoseconds a message."""
        rig, node = self._rig, self._rig.node
        clock = time.perf_counter_ns
        decode = self._decode()
        begin = clock()
        node.on_data(NOW, PRODUCER, self._sends)
        taken = clock()
        # A turn delivers what needs no disk and starts a commit; then what is durable goes out.
        # The bound on one connection's bytes in a turn can make it several.
        flushed = committed = 0
        delivered: list[bytes] = []
        while True:
            before = clock()
            rig.node.flush(NOW)
            middle = clock()
            rig.commit()
            after = clock()
            flushed += middle - before
            committed += after - middle
            written = rig.wire.take(CONSUMER)
            rig.wire.take(PRODUCER)
            if not written and not rig.disk.tokens and delivered:
                break
            delivered.append(written)
        acks = _acknowledgements(b"".join(delivered))
        before_acks = clock()
        node.on_data(NOW, CONSUMER, acks)
        acknowledged = clock()
        rig.settle()
        end = clock()
        times = {
            DECODE: decode,
            ROUTE: taken - begin - decode,
            COMMIT: committed,
            DISPATCH: flushed,
            ACK: acknowledged - before_acks,
            ACK_COMMIT: end - acknowledged,
        }
        return {stage: value / BATCH for stage, value in times.items()}

    def _decode(self) -> int:
        """As the session does it: the frame's borders, then the message in place."""
        framer = Framer(False)
        begin = time.perf_counter_ns()
        framer.begin(self._sends)
        while framer.step():
            decode_send(framer.data, framer.start, framer.end, VERSION)
        return time.perf_counter_ns() - begin


def _send(size: int, durable: bool, number: int) -> bytes:
    message = Message.create(QUEUE, bytes(size), 4, durable, 1_700_000_000_000, 4)
    message.put_property("_AMQ_ROUTING_TYPE", Byte(1))
    return codec.encode(
        SendMessage(message, requires_response=durable, correlation=number, sender_id=0),
        CHANNEL,
        VERSION,
    )


def _acknowledgements(delivered: bytes) -> bytes:
    """One for every message, as the raw load generator sends them."""
    acks = []
    for frame in Framer(False).feed(delivered):
        packet = codec.decode_frame(frame, VERSION)
        if isinstance(packet, ReceiveMessage):
            acks.append(codec.encode(Acknowledge(0, packet.message.id), CHANNEL, VERSION))
    if len(acks) != BATCH:
        raise RuntimeError(f"{len(acks)} of {BATCH} messages were delivered")
    return b"".join(acks)


def profiled(size: int, durable: bool, rounds: int) -> dict[str, float]:
    """The median of each stage, ns a message; the first tenth of the rounds does not count."""
    profile = Profile(size, durable)
    turns = [profile.turn() for _ in range(rounds + rounds // 10)][rounds // 10 :]
    return {stage: median(turn[stage] for turn in turns) for stage in STAGES}


def table(columns: dict[str, dict[str, float]]) -> str:
    """A line for each stage, ns a message."""
    lines = [f"| ns a message | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for stage in STAGES:
        cells = [f"{column[stage]:,.0f}" for column in columns.values()]
        lines.append(f"| {stage} | {' | '.join(cells)} |")
    sums = [f"{sum(column.values()):,.0f}" for column in columns.values()]
    return "\n".join([*lines, f"| together | {' | '.join(sums)} |"])


def main() -> int:
    """Prints the table and writes PROFILE.md; BENCH_ROUNDS and BENCH_OUT as said there."""
    rounds = int(os.environ.get("BENCH_ROUNDS", "200"))
    gc.freeze()
    columns = {name: profiled(*kind, rounds) for name, kind in COLUMNS.items()}
    assert __doc__ is not None
    text = f"""# Where the nanoseconds of one message go

{__doc__}
Written by `make bench-profile`: {build_name()}, {machine()};
the median of {rounds} turns of {BATCH} messages, one producer, one consumer, one acknowledgement each.

{table(columns)}
"""
    print(text)
    out = Path(os.environ.get("BENCH_OUT", CHECKOUT / "bench"))
    (out / "PROFILE.md").write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
