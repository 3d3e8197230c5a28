"""What was promised and what happened: the checkers of a simulation.

Keys of messages are "producer/number". Every violation carries the story of its message.
"""

from __future__ import annotations


class Violation(AssertionError):
    """A promise was broken; the text says which, for which message."""


class Ledger:
    """`confirmed`: the broker said it is safe. `settled`: an acknowledgement was confirmed."""

    def __init__(self) -> None:
        self.confirmed: dict[str, bool] = {}
        self.sent: dict[str, bool] = {}
        self.orders: dict[str, bool] = {}
        self.prices: dict[str, bool] = {}
        self.alerting: dict[str, bool] = {}
        self.delivered: dict[tuple[str, str], int] = {}
        self.settled: dict[tuple[str, str], bool] = {}
        self.read: dict[str, int] = {}
        self.read_order: dict[tuple[str, str], int] = {}
        self.redelivered: int = 0

    def sending(self, key: str, to_prices: bool, alert: bool) -> None:
        self.sent[key] = True
        if to_prices:
            self.prices[key] = True
            if alert:
                self.alerting[key] = True
        else:
            self.orders[key] = True

    def confirm(self, key: str, alerts_known: bool) -> None:
        self.confirmed[key] = True
        if not alerts_known:
            self.alerting.pop(key, None)

    def deliver(self, queue: str, key: str) -> None:
        if key not in self.sent:
            raise Violation(f"{queue} delivered {key}, which nobody sent")
        if (queue, key) in self.settled:
            raise Violation(
                f"{queue} delivered {key} again after its acknowledgement was confirmed"
            )
        count = self.delivered.get((queue, key), 0)
        self.delivered[(queue, key)] = count + 1
        if count:
            self.redelivered += 1

    def settle(self, queue: str, key: str) -> None:
        self.settled[(queue, key)] = True

    def commit_read(self, node: str, keys: list[str]) -> None:
        """A reader's batch was committed: each message exactly once, in order per node and producer."""
        for key in keys:
            if key in self.read:
                raise Violation(
                    f"the archive of {node} held {key} a second time (batch committed twice or message doubled)"
                )
            self.read[key] = 1
            producer, _, number = key.partition("/")
            previous = self.read_order.get((node, producer), -1)
            if int(number) < previous:
                raise Violation(f"{node} showed {key} after number {previous} of the same producer")
            self.read_order[(node, producer)] = int(number)

    # -- at the end -----------------------------------------------------------------------------
    def missing(self) -> list[str]:
        """Confirmed messages that did not arrive where they had to."""
        lost: list[str] = []
        for key in self.confirmed:
            if key in self.orders and ("orders", key) not in self.delivered:
                lost.append(f"{key} never came out of orders")
            if key in self.prices and key not in self.read:
                lost.append(f"{key} is not in the archive")
            if key in self.alerting and ("alerts", key) not in self.delivered:
                lost.append(f"{key} never came out of alerts")
        return lost
