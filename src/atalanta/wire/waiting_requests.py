"""The requests of a client that wait for room at full addresses, while its other requests go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from atalanta.kernel.errors import ADDRESS_FULL, BrokerError

if TYPE_CHECKING:
    from atalanta.kernel.sessions.session import Session

# What one producer may have waiting, beside a single message of any size.
PRODUCER_BYTES_MAX: Final = 1 << 20


def full_text(address: str) -> str:
    """Returns why a message is refused that has waited for room."""
    return f"AMQ229102: address {address} is full, and the message has waited as long as blocked-send-timeout says"


@mypyc_attr(allow_interpreted_subclasses=True)
class WaitingRequest:
    """A message for a full address, or what keeps its order behind one. `address`: where it waits for room.

    `producer`: the client's producer, for the limit of what it may have waiting; `size` in bytes; `since` (ns).
    """

    def __init__(self, producer: str, size: int, address: str) -> None:
        self.producer = producer
        self.size = size
        self.address = address
        self.since: int = 0

    def begin(self, now: int) -> None:
        """Records when the wait begins (ns)."""
        self.since = now

    def proceed(self, now: int) -> bool:
        """Processes the request; a refusal is answered. Returns False if it still waits, at `address`."""
        raise NotImplementedError

    def refuse(self, error: BrokerError) -> None:
        """Answers that the request has waited for too long. Only messages wait for room: other kinds never do."""
        raise NotImplementedError


class WaitingRequests:
    """The waiting requests of one client by lane: those of a lane keep their order, lanes pass each other.

    A request that the kernel cannot answer yet, as a large commit, holds up all that follow: the kernel's session has
    one at a time (`Session.waits`).

    `addresses`: the lanes whose first request waits at an address, in the order in which they came. `ready`: addresses
    that have room. `bytes` is the sum of the sizes, `count` the number of the requests.
    """

    def __init__(self) -> None:
        self.lanes: dict[str, list[WaitingRequest]] = {}
        self.addresses: dict[str, list[str]] = {}
        self.ready: list[str] = []
        self.producers: dict[str, int] = {}
        self.bytes: int = 0
        self.count: int = 0

    def may_add(self, producer: str, size: int) -> bool:
        """Returns whether the producer may have such a message waiting, too."""
        return producer not in self.producers or self.producers[producer] + size <= PRODUCER_BYTES_MAX

    def add(self, lane: str, request: WaitingRequest) -> None:
        """Adds a request at the end of its lane."""
        requests = self.lanes.get(lane)
        if requests is None:
            self.lanes[lane] = [request]
            self._wait_at(request.address, lane)
        else:
            requests.append(request)
        self.bytes += request.size
        self.count += 1
        self.producers[request.producer] = self.producers.get(request.producer, 0) + request.size

    def room_at(self, address: str) -> bool:
        """Records that an address has room for one message. Returns whether a request waits for it."""
        if address not in self.addresses:
            return False
        self.ready.append(address)
        return True

    def go_on(self, now: int, kernel: Session) -> None:
        """Processes what has room, in each lane up to the first request that waits again."""
        while self.ready and not kernel.waits():
            address = self.ready.pop(0)
            lanes = self.addresses.pop(address, [])
            tried = 0
            for lane in lanes:
                tried += 1
                if not self._go_on_in(now, lane, address, kernel) and address in self.addresses:
                    break  # it is full again, or the kernel has to end a request first
            if tried < len(lanes):
                self.addresses[address] = [*self.addresses.get(address, []), *lanes[tried:]]

    def refuse_overdue(self, now: int, address: str, wait_ns: int, kernel: Session) -> None:
        """Refuses what has waited at an address for `wait_ns`; what is behind it goes on."""
        overdue = True
        while overdue and not kernel.waits():
            overdue = False
            for lane in self.addresses.get(address, []):
                request = self.lanes[lane][0]
                if request.since + wait_ns <= now:
                    self._refuse(now, address, lane, request, kernel)
                    overdue = True
                    break

    def _refuse(self, now: int, address: str, lane: str, request: WaitingRequest, kernel: Session) -> None:
        lanes = self.addresses[address]
        lanes.remove(lane)
        if not lanes:
            del self.addresses[address]
        self.lanes[lane].pop(0)
        self._forget(request)
        request.refuse(BrokerError(ADDRESS_FULL, full_text(address)))
        self._go_on_in(now, lane, address, kernel)

    def waits_since(self, address: str) -> int:
        """Returns since when (ns) the first request waits for room at the address; -1: none does."""
        found = -1
        for lane in self.addresses.get(address, []):
            since = self.lanes[lane][0].since
            found = since if found < 0 else min(found, since)
        return found

    def clear(self) -> None:
        """Forgets them: the client has gone."""
        self.lanes.clear()
        self.addresses.clear()
        self.ready.clear()
        self.producers.clear()
        self.bytes = self.count = 0

    def _go_on_in(self, now: int, lane: str, address: str, kernel: Session) -> bool:
        """Processes the requests of a lane. Returns False if one waits again, or for the kernel: then at `address`."""
        requests = self.lanes.get(lane)
        if requests is None:
            return True  # the client has gone meanwhile
        while requests:
            if kernel.waits():
                self.addresses.setdefault(address, []).insert(0, lane)
                self.ready.insert(0, address)
                return False
            request = requests[0]
            waits = not request.proceed(now)
            if lane not in self.lanes:
                return True
            if waits:
                self._wait_at(request.address, lane)
                return False
            requests.pop(0)
            self._forget(request)
        del self.lanes[lane]
        return True

    def _wait_at(self, address: str, lane: str) -> None:
        self.addresses.setdefault(address, []).append(lane)

    def _forget(self, request: WaitingRequest) -> None:
        self.bytes -= request.size
        self.count -= 1
        left = self.producers.get(request.producer, 0) - request.size
        if left > 0:
            self.producers[request.producer] = left
        else:
            self.producers.pop(request.producer, None)
