"""Senders and readers of a queue `q` with attributes of its own."""

from __future__ import annotations

from atalanta.kernel.queue.queue import Queue
from atalanta.kernel.queue.reference import DONE
from atalanta.kernel.sessions.session import Session
from tests.kernel.broker_rig import Bench


def send(bench: Bench, session: Session, *bodies: str, durable: bool = True) -> None:
    """`k=1` is a message with the last value k."""
    for body in bodies:
        message = bench.message("q", body.encode(), durable)
        if "=" in body:
            message.put_property("_AMQ_LVQ_NAME", body.split("=")[0])
        session.send(bench.now, message, 0)


def reader(bench: Bench, priority: int = 0, credits: int = -1, browse: bool = False) -> Session:
    session = bench.session()
    session.create_consumer(bench.now, 0, "q", None, browse, priority)
    session.add_credits(0, credits)
    return session


def held(queue: Queue) -> list[bytes]:
    return [each.message.body for each in queue.references if each.state != DONE]
