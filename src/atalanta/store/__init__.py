"""The journal: an append-only log of records in segment files.

The package does no I/O of its own; all files are reached through the `Disk` port. A segment file (segment.py) is
a header, then blocks, then zeros. A block (block.py) is the output of one group commit: a header, then records.
`Journal` (journal.py) appends and commits. compaction.py frees the oldest segment. recovery.py reads all
segments after a restart.
"""
