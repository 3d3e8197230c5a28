"""The ledger of a simulation: it records promises and deliveries, and checks them.

Keys of messages are "producer/number". Every violation names its message, whose history is then printed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from atalanta.sim.world.world import World

ORDERS: Final = "orders"
ARCHIVE: Final = "archive"
ALERTS: Final = "alerts"
BOOK: Final = "book"
PARCELS: Final = "parcels"


class Violation(AssertionError):
    """A broken guarantee; the text names it and the message (`key`, "" without one)."""

    def __init__(self, text: str, key: str = "") -> None:
        super().__init__(text)
        self.key = key


class Ledger:
    """The record of all messages. `confirmed`: confirmed sends. `settled`: confirmed acknowledgements.

    An order leaves `orders` in one of two ways. A consumer acknowledges it, or a mover takes it and puts a copy into
    `book` in one transaction. Readers of logs read `archive` and `book`, each message exactly once.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.confirmed: dict[str, bool] = {}
        self.sent: dict[str, bool] = {}
        self.orders: dict[str, bool] = {}
        self.prices: dict[str, bool] = {}
        self.alerting: dict[str, bool] = {}
        self.delivered: dict[tuple[str, str], int] = {}
        self.acknowledging: dict[tuple[str, str], bool] = {}
        self.settled: dict[tuple[str, str], int] = {}  # time of the confirmed acknowledgement
        self.moved: dict[str, bool] = {}
        self.expired: dict[str, bool] = {}  # at some node
        self.read: dict[tuple[str, str], int] = {}
        self.read_order: dict[tuple[str, str, str], int] = {}
        self.reordered: dict[str, bool] = {}  # senders with messages that were refused and sent again
        self.refused: dict[str, bool] = {}  # these messages: what was sent after them may be before them
        self.redelivered: int = 0
        # Returns True if a node's log may have a producer's messages out of order (sim/checks/scale_down.py).
        self.excuses: Callable[[str, str], bool] = never

    def tell(self, key: str, line: str) -> None:
        if self.world.telling:
            self.world.tell(key, line)

    # -- senders --------------------------------------------------------------------------------
    def sending(self, key: str, to_prices: bool, alert: bool, durable: bool) -> None:
        """Records a send. A non-durable message may be lost."""
        self.sent[key] = True
        if not durable:
            return
        if to_prices:
            self.prices[key] = True
            if alert:
                self.alerting[key] = True
        else:
            self.orders[key] = True

    def confirm(self, key: str, alerts_known: bool) -> None:
        self.tell(key, f"{key} is confirmed to its sender")
        self.confirmed[key] = True
        if not alerts_known:
            self.alerting.pop(key, None)

    def refuse(self, sender: str, key: str) -> None:
        """Records that a full disk has refused the message, which its sender sends again later."""
        self.tell(key, f"{key} is refused, since the disk is full")
        self.reordered[sender] = True
        self.refused[key] = True

    # -- consumers ------------------------------------------------------------------------------
    def deliver(self, queue: str, key: str, who: str, left_at: int) -> None:
        """Records a delivery. `left_at` is the time when the node closed the connection, 0 if it is open.

        A message on its way at that time was delivered to another consumer. It cannot be acknowledged over this
        connection any more.
        """
        self.tell(key, f"{who} gets {key} from {queue}")
        if key not in self.sent:
            raise Violation(f"{queue} delivered {key}, which no client sent", key)
        settled_at = self.settled.get((queue, key), 0)
        if settled_at and not 0 < left_at <= settled_at:
            raise Violation(
                f"{queue} delivered {key} again after its acknowledgement was confirmed", key
            )
        count = self.delivered.get((queue, key), 0)
        self.delivered[(queue, key)] = count + 1
        if count:
            self.redelivered += 1

    def acknowledge(self, queue: str, key: str) -> None:
        """Records that an acknowledgement was sent; it may be lost."""
        self.acknowledging[(queue, key)] = True

    def settle(self, queue: str, key: str) -> None:
        self.tell(key, f"its acknowledgement in {queue} is confirmed")
        if (queue, key) in self.settled:
            raise Violation(f"two acknowledgements of {key} in {queue} were confirmed", key)
        self.settled[(queue, key)] = self.world.now

    def move(self, key: str) -> None:
        """Records the confirmed commit of a transaction that moved the order into the book."""
        self.tell(key, "the transaction that moved it is confirmed")
        self.moved[key] = True
        if (ORDERS, key) in self.settled:
            raise Violation(f"{key} left {ORDERS} twice, and both were confirmed", key)
        self.settled[(ORDERS, key)] = self.world.now

    def expire(self, key: str) -> None:
        """Records that a copy of the message has expired, in its time."""
        self.tell(key, "it expires")
        self.expired[key] = True

    # -- readers of logs ------------------------------------------------------------------------
    def commit_read(self, node: str, queue: str, keys: list[str]) -> None:
        """Records the committed batch of a reader: each message exactly once, in order per node and producer."""
        for key in keys:
            self.tell(key, f"the reader of {queue} at {node} commits it")
            if (queue, key) in self.read:
                raise Violation(
                    f"{queue} of {node} held {key} a second time (batch committed twice or message doubled)",
                    key,
                )
            self.read[(queue, key)] = 1
            if queue != ARCHIVE:
                continue
            producer, _, number = key.partition("/")
            previous = self.read_order.get((queue, node, producer), -1)
            if producer in self.reordered:
                continue
            if int(number) < previous and not self.excuses(node, producer):
                raise Violation(
                    f"{node} showed {key} after number {previous} of the same producer", key
                )
            self.read_order[(queue, node, producer)] = int(number)

    # -- at the end -----------------------------------------------------------------------------
    def check_acknowledged(self, senders: str, queue: str) -> None:
        """Raises Violation if a confirmed message was never delivered from its queue. `senders`: how their names
        begin."""
        for key in self.confirmed:
            if key.startswith(senders) and (queue, key) not in self.acknowledging:
                raise Violation(f"confirmed message lost: {key} was never delivered from {queue}", key)

    def check(self) -> None:
        """Raises Violation for the first confirmed message that did not arrive."""
        for key in self.confirmed:
            if key in self.orders:
                self._check_order(key)
            if key in self.prices and (ARCHIVE, key) not in self.read:
                raise Violation(f"confirmed message lost: {key} is not in the archive", key)
            if key in self.alerting and (ALERTS, key) not in self.delivered:
                raise Violation(f"confirmed message lost: {key} was never delivered from alerts", key)
        for key in self.moved:
            if (BOOK, key) not in self.read and key not in self.expired:
                raise Violation(f"a confirmed transaction moved {key}, but it is not in book", key)

    def _check_order(self, key: str) -> None:
        in_book = (BOOK, key) in self.read
        if not in_book and (ORDERS, key) not in self.acknowledging and key not in self.expired:
            raise Violation(f"confirmed message lost: {key} left orders without a delivery", key)
        if in_book and (ORDERS, key) in self.settled and key not in self.moved:
            raise Violation(f"{key} was acknowledged by a consumer, and moved into book too", key)


def never(node: str, producer: str) -> bool:
    """Returns False, for simulations without scale-down."""
    return False
