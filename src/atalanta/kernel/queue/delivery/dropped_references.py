"""References that have left their queue in great numbers, until the memory that they are charged is free."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.tasks import Task

if TYPE_CHECKING:
    from atalanta.kernel.queue.delivery.message_table import MessageTable
    from atalanta.kernel.queue.reference import Reference


class DroppedReferences(Task):
    """Finished references that the journal no longer keeps. The last ones are dropped first."""

    def __init__(self, table: MessageTable, references: list[Reference]) -> None:
        self.table = table
        self.references = references

    def do(self, now: int, most: int) -> int:
        references = self.references
        count = min(most, len(references))
        for _ in range(count):
            self.table.drop(references.pop())
        return count

    def ended(self) -> bool:
        return not self.references
