"""Sizes and limits of the journal."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB
SEGMENT_SIZE_BYTES_MIN = 1 * KIB
# Beyond it every byte gained would cost several written.
COMPACT_PERCENTAGE_MAX = 75


@dataclass
class JournalConfig:
    """Defaults are Artemis 2.44's where it has the setting (fact sheet, journal-file-size ff.)."""

    journal_id: bytes = bytes(16)
    """The node id, 16 bytes: segments of another node are refused."""
    segment_size_bytes: int = 10 * MIB
    """journal-file-size. A record that does not fit gets a larger segment of its own."""
    compact_min_segments: int = 10
    """journal-compact-min-files: below this many segments nothing is compacted."""
    compact_percentage: int = 30
    """journal-compact-percentage: compact while less than this part of the files is alive."""
    block_size_bytes_max: int = 2 * MIB
    """Most bytes of one commit, and so most that a crash can tear; a large record may exceed it."""
    compact_step_bytes: int = 128 * KIB
    """How much of an old segment one `compact_step` reads."""
    read_size_bytes: int = 1 * MIB
    """How much recovery reads at once."""

    def __post_init__(self) -> None:
        """ValueError names the setting."""
        if len(self.journal_id) != 16:
            raise ValueError(f"journal_id: 16 bytes are needed, not {len(self.journal_id)}")
        for name, least in (
            ("segment_size_bytes", SEGMENT_SIZE_BYTES_MIN),
            ("compact_min_segments", 2),
            ("compact_percentage", 1),
            ("block_size_bytes_max", 64),
            ("compact_step_bytes", 64),
            ("read_size_bytes", 64),
        ):
            value: int = getattr(self, name)
            if value < least:
                raise ValueError(f"{name}: at least {least}, not {value}")
        if self.compact_percentage > COMPACT_PERCENTAGE_MAX:
            raise ValueError(
                f"compact_percentage: at most {COMPACT_PERCENTAGE_MAX}, "
                f"not {self.compact_percentage}"
            )
