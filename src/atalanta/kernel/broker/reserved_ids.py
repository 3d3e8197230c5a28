"""The ids that the journal reserves for a life of the node: none is used twice, whatever the clock says.

Ids of non-durable messages and of remote bindings are in no record, and clients and peers may have them. So a COUNTERS
record says up to where ids may have been used. A life begins at the marks that it finds, and writes marks one block
further. Until these are durable, no output leaves (`Node.may_send`). Further marks follow when half of the block is
used, so that nothing ever waits for them.

The journals of a group may lack the marks of an epoch that nobody has confirmed. So an epoch of a group begins further
above the marks that it finds, once for each epoch since the last one in its journal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.journal import records
from atalanta.message.encoding.buffer import Writer

if TYPE_CHECKING:
    from atalanta.kernel.ports import JournalPort
    from atalanta.kernel.queue.delivery.message_table import MessageTable
    from atalanta.kernel.registry.bindings import BindingRegistry

# The ids between two marks.
BLOCK_IDS: Final = 1 << 28
# Ids that an epoch of a group leaves to each one before it: more than a block, and what the journal may lack.
EPOCH_IDS: Final = 1 << 32
# Numbers of announcements (ms) that an epoch leaves to each one before it.
EPOCH_NUMBERS: Final = 1_000


class FoundIds:
    """The ids that a recovery finds: the highest marks of COUNTERS, and the highest ids that other records have.

    `marked`: the last COUNTERS record has marks. One of an earlier version has the ids that were next.
    """

    def __init__(self) -> None:
        self.marked = False
        self.message_mark: int = 0
        self.binding_mark: int = 0
        self.message_id_max: int = 0
        self.binding_id_max: int = 0
        self.announced: int = 0

    def on_counters(self, message_id: int, binding_id: int, announced: int) -> None:
        """Records the content of a COUNTERS record; `announced` is -1 in one of an earlier version."""
        self.marked = announced >= 0
        self.message_mark = max(self.message_mark, message_id)
        self.binding_mark = max(self.binding_mark, binding_id)
        self.announced = max(self.announced, announced)

    def trusted(self) -> bool:
        """Returns whether no id is used above the marks. An earlier version that ran in between knew of none."""
        below = self.message_id_max < self.message_mark and self.binding_id_max < self.binding_mark
        return self.marked and below


class ReservedIds:
    """The ids of this life: where they begin, and the marks.

    `awaited_lsn` is that of the record which output waits for: the one that this life began with, or the last one with
    the number of an announcement. `announced` is the highest number that this node has announced itself with, in all
    its clusters.
    """

    def __init__(self, store: MessageTable, bindings: BindingRegistry, journal: JournalPort) -> None:
        self._store = store
        self._bindings = bindings
        self.journal = journal
        self.awaited_lsn: int = 0
        self.announced: int = 0
        # Further marks are written from these ids on, when the first ones are.
        self._message_limit: int = 1 << 62
        self._binding_limit: int = 1 << 62

    def begin(self, now: int, found: FoundIds, epochs: int) -> None:
        """Begins a life above everything that was found. `epochs`: those of the group since the last in the journal.

        Without marks nobody knows which ids were used, and an earlier version begins at its clock: then they begin a
        block further, and not below the clock (`now` in ns).
        """
        message_id = max(found.message_mark, found.message_id_max + 1)
        binding_id = max(found.binding_mark, found.binding_id_max + 1)
        if not found.trusted():
            message_id = max(message_id + BLOCK_IDS, now // 1_000)
            binding_id = max(binding_id + BLOCK_IDS, now // 1_000)
        self._store.skip_message_ids(message_id + epochs * EPOCH_IDS)
        self._bindings.begin(binding_id + epochs * EPOCH_IDS)
        self.announced = found.announced + epochs * EPOCH_NUMBERS

    def take_number(self, now: int, above: int) -> int:
        """Returns the number of an announcement (ms): the clock's, unless `above` or one used before is not lower."""
        self.announced = max(self.announced + 1, above + 1, now // 1_000_000)
        self.awaited_lsn = self.renew()
        return self.announced

    def are_used_up(self) -> bool:
        """Returns whether half of a block is used."""
        return self._store.next_message_id >= self._message_limit or self._bindings.next_id >= self._binding_limit

    def renew(self) -> int:
        """Appends marks one block above the next ids, and returns the lsn."""
        message_id, binding_id = self._store.next_message_id, self._bindings.next_id
        self._message_limit = message_id + BLOCK_IDS // 2
        self._binding_limit = binding_id + BLOCK_IDS // 2
        writer = Writer()
        writer.int64(message_id + BLOCK_IDS)
        writer.int64(binding_id + BLOCK_IDS)
        writer.int64(self.announced)
        return self.journal.append(records.COUNTERS, writer.getvalue())
