"""What is on its way to its places in queues of this node (late.py), by queue and link, and where the next comes."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.kernel.message import Message


class Link:
    """Arrivals over one link (kernel/arrival.py) that are on their way to one queue."""

    def __init__(self) -> None:
        self.heap: list[int] = []
        self.placed: dict[int, int] = {}  # those of them that have gone, and how often

    def lowest(self) -> int:
        """0: there is none."""
        while self.heap and self.heap[0] in self.placed:
            arrival = heappop(self.heap)
            left = self.placed.pop(arrival) - 1
            if left:
                self.placed[arrival] = left
        return self.heap[0] if self.heap else 0


class Awaited:
    """`links`: queue id -> number of the link -> what comes to the queue over it."""

    def __init__(self) -> None:
        self.links: dict[int, dict[int, Link]] = {}

    def __contains__(self, queue_id: int) -> bool:
        return queue_id in self.links

    def queues(self) -> list[int]:
        return list(self.links)

    def add(self, queue_id: int, message: Message) -> None:
        links = self.links.setdefault(queue_id, {})
        link = links.setdefault(int(message.arrival_link), Link())
        heappush(link.heap, int(message.arrival))

    def remove(self, queue_id: int, message: Message) -> None:
        """It is there."""
        link = self.links.get(queue_id, {}).get(int(message.arrival_link))
        if link is not None:
            arrival = int(message.arrival)
            link.placed[arrival] = link.placed.get(arrival, 0) + 1

    def forget(self, queue_id: int) -> None:
        self.links.pop(queue_id, None)

    def lowest(self, queue_id: int) -> dict[int, int]:
        """Of each link the lowest arrival that is on its way to the queue."""
        found: dict[int, int] = {}
        links = self.links.get(queue_id, {})
        for number, link in list(links.items()):
            arrival = link.lowest()
            if arrival:
                found[number] = arrival
            else:
                del links[number]
        if not links:
            self.forget(queue_id)
        return found
