"""A member that is away, and the look through what is parked for it (parked.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.arrival import OWN
from atalanta.kernel.holding import LATEST
from atalanta.kernel.reference import DONE
from atalanta.kernel.returning import Room

if TYPE_CHECKING:
    from atalanta.kernel.bindings import RemoteBinding
    from atalanta.kernel.queue import Queue
    from atalanta.kernel.spots import Looked


class Turn:
    """What a look does in one turn. `looked`: where to look for the next place. `first`: lowest place of what came
    back, by queue name."""

    def __init__(self) -> None:
        self.looked: dict[tuple[int, int], Looked] = {}
        self.first: dict[str, int] = {}
        self.stopped: bool = False  # the last message looked at waits until others have moved for it, or are on disk


class Look:
    """Once through a member's queue, over several turns; it goes on at `position`, a sequence, and is over at 0.

    Queues here, by name: `touched` has those where something came back to, or may yet, as its consumer has come;
    `waits` the place of the first message for a queue where that lies among others in page files.
    """

    def __init__(self) -> None:
        self.position: int = 0
        self.held: dict[str, bool] = {}  # groups of which a message stays
        self.touched: dict[str, bool] = {}
        self.waits: dict[str, int] = {}
        self.last_place: int = 1  # of the last message looked at
        self.copies_from: int = LATEST  # lowest place of those that came to the queue behind what came here later
        self.without_room: int = 0  # turns in a row that found no room for the next page

    def before(self, place: int) -> int:
        """What has that place, or a lower one, has nothing in front of it that the look has not passed yet."""
        return min(place, self.copies_from - 1)


class Away:
    """A member without a link. `meant`: binding id there -> address and routing name, as far as they are known.

    Queues here, by name: `newcomers` has what a consumer that came during the look may have before the next one,
    `held_queues` those that wait for more.
    """

    def __init__(self, since: int) -> None:
        self.since = since
        self.meant: dict[int, tuple[str, str]] = {}
        self.due: bool = False  # the time is over
        self.armed: bool = False
        self.again: bool = False  # a consumer came while a look was under way: what that has passed may be for it
        self.given_up: bool = False  # by an operator, in this life of the node
        self.groups: dict[str, Queue | RemoteBinding] = {}  # where groups went
        self.returned: int = 0
        self.newcomers: dict[str, int] = {}
        self.held_queues: dict[str, bool] = {}
        self.look = Look()
        self.turn = Turn()
        self.room = Room()
        self.unsettled_lsn: int = 0  # the look goes on when the journal is durable up to here

    def begin(self, queue: Queue) -> None:
        """A look from the front."""
        self.again = False
        self.newcomers = {}
        self.look = Look()
        self.look.touched = dict(self.held_queues)
        self.look.copies_from = copies_from(queue)

    def may_return_to(self, queue: Queue) -> bool:
        """Whether its address and routing name are among those of the member, as far as they are known."""
        return not self.meant or (queue.spec.address, queue.routing_name()) in self.meant.values()


def copies_from(queue: Queue) -> int:
    """Lowest place of what was parked for another member before: it lies behind what came to this node later."""
    return min(
        (
            int(each.message.arrival)
            for each in queue.references
            if each.message.arrival_link == OWN and each.state != DONE
        ),
        default=LATEST,
    )
