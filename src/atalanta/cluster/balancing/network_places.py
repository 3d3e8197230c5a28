"""Where the failover clients of a broker in a network are to be. No plan counts clients for all brokers there.

Each client has an order of brokers, from its client id and their names (AcceptorList). Its place is the first of them
that has room (consistent hashing with bounded loads): another broker below the mean, or this one up to a limit above
the mean. So a client goes only to a broker that will keep it, and two brokers do not send it to and fro, also when they
know an old count of each other. A broker that tells no count (ActiveMQ Classic) always has room.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from atalanta.cluster.balancing.plan import allowed, highest

OWN: Final = ""  # this broker, among the keys of its neighbours
ARRIVAL_NS: Final = 3_000_000_000  # a client that was sent away counts at its new broker so long at most
TOLERANCE_PERCENT: Final = 20


class NetworkLoads:
    """The clients of the neighbours, as far as a broker knows. `told`: their counts, by key.

    `arriving`: the times (ns) at which clients were sent to a neighbour that has not counted them yet.
    """

    def __init__(self) -> None:
        self.told: dict[str, int] = {}
        self.arriving: dict[str, list[int]] = {}

    def tell(self, now: int, counts: Mapping[str, int | None]) -> None:
        """Records the counts of the neighbours; None: unknown."""
        for key in [key for key in self.told if counts.get(key) is None]:
            del self.told[key]
        for key, clients in counts.items():
            if clients is not None:
                arrived = clients - self.told.get(key, clients)
                self.told[key] = clients
                waiting = [at for at in self.arriving.get(key, []) if now - at < ARRIVAL_NS]
                self.arriving[key] = waiting[max(arrived, 0) :]

    def sent(self, now: int, key: str) -> None:
        """Records that a client was sent to a neighbour."""
        self.arriving.setdefault(key, []).append(now)

    def of(self, key: str) -> int | None:
        """Returns how many clients a neighbour has or is about to have; None if it does not tell."""
        clients = self.told.get(key)
        return None if clients is None else clients + len(self.arriving.get(key, []))


class Room:
    """The room of the brokers that clients may be told of. `own` is the count of this broker's clients; `others` of
    them, for which nothing is decided, have a place here.

    A client goes home to a broker below the mean rounded down, and leaves a full one for any below the mean: the gap
    keeps a client that was sent away from being sent back.
    """

    def __init__(self, own: int, loads: NetworkLoads, keys: Sequence[str], others: int = 0) -> None:
        counted = {key: load for key in keys if key != OWN and (load := loads.of(key)) is not None}
        brokers = len(counted) + 1
        total = own + sum(counted.values())
        level = highest(total, brokers)
        self.limit: int = allowed(total, brokers, TOLERANCE_PERCENT) - others
        self.spare: int = level - total // brokers  # what is left of the mean for those that leave a full broker
        self.free: dict[str, int] = {key: max(level - load, 0) for key, load in counted.items()}

    def share(self, loads: NetworkLoads) -> None:
        """Leaves a part of the room to the other brokers, which may send clients there in the same second."""
        givers = max(len(self.free), 1)
        for key, free in self.free.items():
            coming = len(loads.arriving.get(key, []))
            self.free[key] = min(free, max((free + coming) // givers, 1) - coming)

    def is_open(self, key: str, leaving: bool) -> bool:
        """Returns whether a client may go to a neighbour; `leaving`: this broker has no room for it."""
        free = self.free.get(key)
        return free is None or free > (0 if leaving else self.spare)

    def take(self, key: str) -> None:
        """Gives a place at a neighbour to a client."""
        if key in self.free:
            self.free[key] -= 1


def places_of(orders: Mapping[int, Sequence[str]], room: Room) -> dict[int, str]:
    """Returns the clients that are to go, each with its neighbour. `orders`: the keys of the brokers by connection."""
    going: dict[int, str] = {}
    staying: list[tuple[int, int]] = []
    for conn, order in orders.items():
        rank, key = first_open(order, room)
        if key == OWN:
            staying.append((-rank, conn))
        else:
            room.take(key)
            going[conn] = key
    staying.sort()
    surplus = max(len(staying) - room.limit, 0)
    for _, conn in staying[:surplus]:  # those that wanted to be here least
        others = [key for key in orders[conn] if key != OWN and room.is_open(key, True)]
        if others:
            room.take(others[0])
            going[conn] = others[0]
    return going


def first_open(order: Sequence[str], room: Room) -> tuple[int, str]:
    """Returns the rank and key of the first broker in a client's order that has room for it, or is this one."""
    for rank, key in enumerate(order):
        if key == OWN or room.is_open(key, False):
            return rank, key
    return len(order), OWN
