"""Transactions that are too large for one event-loop iteration, and their requests as a protocol handles them."""

from __future__ import annotations

from collections.abc import Callable

from atalanta.kernel.errors import BrokerError, Postponed
from atalanta.kernel.sessions.session import Session
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.kernel.transactions import xa_session
from tests.kernel.broker_rig import Bench, endpoint

STEP_WORK = 200
# Each is a message with a route: work 2. So a transaction of these needs several steps of each kind.
COUNT = 3 * STEP_WORK


def small_steps(settings: AddressSettingsRepository | None = None, paging: bool = False) -> Bench:
    """A broker whose steps are small."""
    config = BrokerConfig()
    config.step_work_max = STEP_WORK
    return Bench(config, settings, paging)


def request(bench: Bench, session: Session, token: int, process: Callable[[int], None]) -> None:
    """Processes a request, and again when it goes on; a refusal is recorded as the protocols answer it."""
    try:
        process(bench.now)
    except Postponed as postponed:
        session.wait(bench.now, postponed, None, lambda _: request(bench, session, token, process))
    except BrokerError as error:
        endpoint(session).failed(token, error)
    except xa_session.XaError as refusal:  # separate name: another type
        endpoint(session).failed(token, BrokerError(refusal.code, refusal.text))


def begin_commit(bench: Bench, session: Session, token: int = 4) -> None:
    """Begins to commit the session's transaction."""
    request(bench, session, token, lambda now: session.commit(now, token))


def fill(bench: Bench, session: Session, *addresses: str, count: int = COUNT, durable: bool = True) -> list[bytes]:
    """Sends messages to the addresses in turn; returns the bodies in order."""
    bodies = [b"%d" % number for number in range(count)]
    for number, body in enumerate(bodies):
        session.send(bench.now, bench.message(addresses[number % len(addresses)], body, durable), 1)
    return bodies


def bodies(bench: Bench, queue: str) -> list[bytes]:
    """The bodies of the messages in a queue, in order."""
    return [reference.message.body for reference in bench.broker.queues[queue].live()]


def answers(session: Session, token: int) -> int:
    """How often the session was told that the request of this token is done."""
    return endpoint(session).answers.count(token)
