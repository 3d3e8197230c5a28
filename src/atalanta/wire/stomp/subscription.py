"""A subscription: its acknowledgement mode, and the credit of its consumer."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from atalanta.wire.connection import ProtocolError
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

    def cost(self, message_id: int, frame_bytes: int) -> int:
        """Records a delivery; returns its cost in credits."""
        cost = 1 if self.counts_messages else frame_bytes
        self.held[message_id] = cost
        return cost

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


class Subscription:
    """A subscription. `id` is the client's, None for one of STOMP 1.0 without an id. `consumer_id` is in message ids.

    `own_queue` is the queue that ends with the subscription, None if its queue stays.
    """

    def __init__(
        self,
        sub_id: str | None,
        consumer_id: int,
        destination: Destination,
        mode: str,
        window: Window,
        own_queue: str | None,
    ) -> None:
        self.id = sub_id
        self.consumer_id = consumer_id
        self.destination = destination
        self.automatic: bool = mode == AUTO
        self.cumulative: bool = mode == CLIENT
        self.window = window
        self.own_queue = own_queue

    def refused_with(self, message_id: int) -> list[int]:
        """Returns the messages that a NACK of one gives back: in the mode client all up to it."""
        found = self.window.through(message_id) if self.cumulative else []
        return found or [message_id]


def mode_of(frame: Frame) -> str:
    """Returns the acknowledgement mode that SUBSCRIBE asks for. ProtocolError for an unknown one."""
    mode = frame.headers.get("ack", AUTO)
    if mode not in MODES:
        raise ProtocolError(f"SUBSCRIBE: the header ack is {mode[:40]!r}, none of {', '.join(MODES)}")
    return mode


def window_of(frame: Frame, mode: str, usual_bytes: int) -> Window:
    """Returns the window that SUBSCRIBE asks for. Messages of mode auto are acknowledged by their delivery."""
    if mode == AUTO:
        return Window(UNLIMITED, False)
    if "consumer-window-size" in frame.headers:
        return Window(frame.number("consumer-window-size", usual_bytes), False)
    if "activemq.prefetchSize" in frame.headers:
        return Window(frame.number("activemq.prefetchSize", 1), True)
    return Window(usual_bytes, False)
