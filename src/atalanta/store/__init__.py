"""The journal: an append-only log of records in segment files.

The package does no I/O of its own; all files are reached through the `Disk` port. A segment file (segment.py) is
a header, then blocks, then zeros. A block (block.py) is the output of one group commit: a header, then records.
`Journal` (journal.py) appends and commits. compaction.py frees the oldest segment. recovery.py reads all
segments after a restart.
"""

from typing import TYPE_CHECKING

from atalanta.face import face

if TYPE_CHECKING:
    from atalanta.store.block import decode_block_head
    from atalanta.store.config import JournalConfig
    from atalanta.store.errors import JournalDamaged
    from atalanta.store.journal import Journal
    from atalanta.store.pages import page_name, page_number
    from atalanta.store.segment import SEGMENT_HEAD_SIZE, Segment, segment_number
else:
    __getattr__ = face(__name__)

__all__ = [
    "SEGMENT_HEAD_SIZE", "Journal", "JournalConfig", "JournalDamaged", "Segment",
    "decode_block_head", "page_name", "page_number", "segment_number",
]
