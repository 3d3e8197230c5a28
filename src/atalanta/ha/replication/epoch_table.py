"""The epoch table of a journal: where each epoch begins, and up to where two journals are equal."""

from __future__ import annotations

from typing import TypeAlias

# (epoch, lsn of its first record), ascending in both.
EpochTable: TypeAlias = tuple[tuple[int, int], ...]


def cut_table(table: EpochTable, last: int) -> EpochTable:
    """Returns the epochs of a journal that ends with lsn `last`."""
    return tuple(entry for entry in table if entry[1] <= last)


def epoch_end(table: EpochTable, epoch: int, last: int) -> int:
    """Returns the last lsn of `epoch` in a journal that ends with lsn `last`; 0 without that epoch."""
    for index, entry in enumerate(table):
        if entry[0] == epoch:
            return table[index + 1][1] - 1 if index + 1 < len(table) else last
    return 0


def agreement(own: EpochTable, own_last: int, other: EpochTable, other_last: int) -> int:
    """Returns the lsn up to which two journals are equal: the earlier end of their last common epoch, 0 without one."""
    for epoch, _ in reversed(own):
        end = min(epoch_end(own, epoch, own_last), epoch_end(other, epoch, other_last))
        if end > 0:
            return end
    return 0
