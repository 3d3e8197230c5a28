"""The journal: an append-only log of records in segment files. Pure; the files lie behind `Disk`.

A segment file (segment.py) is a header, then blocks, then zeros. A block (block.py) is what one
group commit wrote: a header, then records. `Journal` (journal.py) appends and commits,
compaction.py cleans the oldest segment, recovery.py reads everything back after a restart.
"""
