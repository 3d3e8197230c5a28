"""A subscription: its acknowledgement mode, its queues, and the credit of each queue's consumer."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from atalanta.wire.protocol_error import ProtocolError
from atalanta.wire.stomp.destination import Destination
from atalanta.wire.stomp.frame import Frame

AUTO: Final = "auto"
CLIENT: Final = "client"
CLIENT_INDIVIDUAL: Final = "client-individual"
MODES: Final = (AUTO, CLIENT, CLIENT_INDIVIDUAL)
UNLIMITED: Final = -1
DURABLE_NAMES: Final = ("durable-subscription-name", "durable-subscriber-name", "activemq.subscriptionName")


class Window:
    """The limit of what a client may hold without an acknowledgement: `size` bytes, or messages with `counts_messages`.

    UNLIMITED: any number. A window of 0 is one message. `held`: message id -> cost, in order of delivery.
    """

    def __init__(self, size: int, counts_messages: bool) -> None:
        self.size: int = UNLIMITED if size < 0 else max(size, 1)
        self.counts_messages = counts_messages
        self.held: OrderedDict[int, int] = OrderedDict()

    def empty(self) -> Window:
        """Returns a window of the same size."""
        return Window(self.size, self.counts_messages)

    def cost(self, message_id: int, frame_bytes: int) -> int:
        """Records a delivery; returns its cost in credits."""
        cost = 1 if self.counts_messages else frame_bytes
        self.held[message_id] = cost
        return cost

    def hold_again(self, costs: dict[int, int]) -> int:
        """Records deliveries whose acknowledgement was rolled back, before those that came later. Returns their cost.

        `costs`: message id -> bytes, in order of delivery.
        """
        total = 0
        for message_id in reversed(list(costs)):
            total += self.cost(message_id, costs[message_id])
            self.held.move_to_end(message_id, last=False)
        return total

    def through(self, message_id: int) -> list[int]:
        """Returns the ids of the held messages up to this one; an empty list if it is not held."""
        found: list[int] = []
        if message_id in self.held:
            for held in self.held:
                found.append(held)
                if held == message_id:
                    break
        return found

    def give_back(self, message_id: int, cumulative: bool) -> int:
        """Returns the credits of an acknowledged message, and with `cumulative` of those delivered before it."""
        held = self.held
        if message_id not in held:
            return 0
        if not cumulative:
            return held.pop(message_id)
        credits = 0
        while True:
            first, cost = held.popitem(last=False)
            credits += cost
            if first == message_id:
                return credits


class Part:
    """One queue of a subscription. `number` is that of the kernel's consumer, and in message ids.

    `own_queue` is the queue that ends with the subscription, None if its queue stays. `matched`: its queue is one of
    those that a name with wildcards means. `drains`: a browser that has used up its window before the end of the queue.
    """

    def __init__(
        self, subscription: Subscription, number: int, destination: Destination, own_queue: str | None, matched: bool
    ) -> None:
        self.subscription = subscription
        self.number = number
        self.destination = destination
        self.own_queue = own_queue
        self.matched = matched
        self.window: Window = subscription.window.empty()
        self.browsed: bool = False
        self.drains: bool = False

    def end_browsing(self) -> None:
        """Records that a browser is at the end of this queue."""
        self.browsed = True
        self.drains = False

    def drain_again(self, drains: bool) -> None:
        """Sets whether the queue of a browser is to be drained once there are credits."""
        self.drains = drains


class Subscription:
    """A subscription. `id` is the client's, None for one of STOMP 1.0 without an id; then `key` is the destination.

    `parts` by the kernel's number: a composite destination and one with wildcards have several, each with a `window` of
    its own; `names` are their destinations. `ordered`: an acknowledgement takes all before it, in all parts; `order`
    has the deliveries of all. `confirmed`: False until its RECEIPT, which comes before its first message.
    """

    def __init__(
        self, sub_id: str | None, text: str, mode: str, window: Window, browser: bool, confirmed: bool
    ) -> None:
        self.id = sub_id
        self.text = text
        self.automatic: bool = mode == AUTO
        self.cumulative: bool = mode == CLIENT
        self.window = window
        self.browser = browser
        self.confirmed = confirmed
        self.parts: dict[int, Part] = {}
        self.names: dict[str, bool] = {}
        self.ordered: bool = False
        self.order: OrderedDict[tuple[int, int], bool] = OrderedDict()

    def key(self) -> str:
        """Returns the name by which the client ends it."""
        return self.text if self.id is None else self.id

    def order_parts(self) -> None:
        """Records that it has several parts: their deliveries are kept in order if an acknowledgement needs that."""
        self.ordered = self.cumulative

    def confirm(self) -> None:
        """Records that its RECEIPT is sent."""
        self.confirmed = True

    def add_part(self, part: Part) -> None:
        """Adds a part."""
        self.parts[part.number] = part
        self.names[part.destination.name] = True

    def remove_part(self, number: int) -> None:
        """Removes a part, with its deliveries."""
        part = self.parts.pop(number, None)
        if part is not None:
            self.names.pop(part.destination.name, None)
        if self.order:
            self.order = OrderedDict((key, True) for key in self.order if key[0] != number)

    def end(self) -> None:
        """Forgets the order of its deliveries: it ends."""
        self.order.clear()

    def has_queue(self, name: str) -> bool:
        """Returns True if a part has that destination."""
        return name in self.names

    def through(self, part: Part, message_id: int, cumulative: bool) -> list[tuple[Part, int]]:
        """Returns the delivery, and with `cumulative` all before it that are held; only itself if it is not held."""
        if not cumulative:
            return [(part, message_id)]
        if not self.ordered:
            return [(part, each) for each in part.window.through(message_id)] or [(part, message_id)]
        found: list[tuple[Part, int]] = []
        if (part.number, message_id) in self.order:
            for number, held in self.order:
                found.append((self.parts[number], held))
                if number == part.number and held == message_id:
                    return found
        return [(part, message_id)]

    def add_delivery(self, number: int, message_id: int) -> None:
        """Records the order of a delivery."""
        self.order[(number, message_id)] = True

    def forget(self, number: int, message_id: int) -> None:
        """Records that a delivery is held no more."""
        self.order.pop((number, message_id), None)

    def order_again(self) -> None:
        """Records that deliveries are held again, which are no more in the order of the kernel's consumers."""
        self.order_parts()
        if self.ordered:
            held = [(part.number, each) for part in self.parts.values() for each in part.window.held]
            self.order = OrderedDict((key, True) for key in held)

    def is_browsed(self) -> bool:
        """Returns True if a browser is at the end of all its queues."""
        return all([part.browsed for part in self.parts.values()])


def mode_of(frame: Frame) -> str:
    """Returns the acknowledgement mode that SUBSCRIBE asks for. ProtocolError for an unknown one."""
    mode = frame.headers.get("ack", AUTO)
    if mode not in MODES:
        raise ProtocolError(f"SUBSCRIBE: the header ack is {mode[:40]!r}, none of {', '.join(MODES)}")
    return mode


def window_of(frame: Frame, mode: str, usual: Window) -> Window:
    """Returns the window that SUBSCRIBE asks for. Messages of mode auto are acknowledged by their delivery."""
    if mode == AUTO:
        return Window(UNLIMITED, False)
    if "consumer-window-size" in frame.headers:
        return Window(frame.number("consumer-window-size", usual.size), False)
    if "activemq.prefetchSize" in frame.headers:
        return Window(frame.number("activemq.prefetchSize", 1), True)
    return usual
