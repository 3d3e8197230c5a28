"""Sizes and limits of the journal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from atalanta.kernel.option import OptionGroup, ignored, option, unbuilt
from atalanta.kernel.unseen_options import CACHES, LOGS, STORE_LAYOUT, THREADS

KIB = 1024
MIB = 1024 * KIB
SEGMENT_SIZE_BYTES_MIN = 1 * KIB
# Above this share, each byte gained would cost several bytes written.
COMPACT_PERCENTAGE_MAX = 75


@dataclass(eq=False, repr=False)
class JournalConfig(OptionGroup):
    """The settings of the journal. Defaults are those of Artemis 2.44 where Artemis has the setting."""

    journal_id: bytes = bytes(16)
    """The node id, 16 bytes. Segments of another node are refused."""
    segment_size_bytes: int = 10 * MIB
    """journal-file-size. A record that does not fit gets a larger segment of its own."""
    compact_min_segments: int = 10
    """journal-compact-min-files: with fewer segments there is no compaction."""
    compact_percentage: int = 30
    """journal-compact-percentage: compaction begins below this share of live data."""
    block_size_bytes_max: int = 2 * MIB
    """Maximum size of one commit, and so of the bytes that a crash can tear. One large record may exceed it."""
    compact_step_bytes: int = 128 * KIB
    """Bytes of an old segment that one `compact_step` reads."""
    read_size_bytes: int = 1 * MIB
    """Bytes that recovery reads at once."""

    def __post_init__(self) -> None:
        """Checks all settings. ValueError names the setting."""
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


COMPACT_SEGMENTS_MIN: Final = 2
_ALWAYS: Final = "always on: nothing is confirmed before it is on disk"


@dataclass(eq=False, repr=False)
class JournalOptions(OptionGroup):
    """The journal elements of broker.xml, with Artemis' names and defaults.

    `directory` is the text of the element; relative paths are below the instance folder.
    """

    directory: str = option(
        "data/journal", "journal-directory", "holds the segments and the node id"
    )
    file_size_bytes: int = option(
        10 * 1024 * 1024,
        "journal-file-size",
        "size of one segment",
        unit="bytes",
        minimum=64 * 1024,
        maximum=2**31 - 1,
    )
    compact_min_files: int = option(
        10,
        "journal-compact-min-files",
        "segments below which nothing is compacted; compaction cannot be switched off by 0",
        unit="count",
        minimum=0,
    )
    compact_percentage: int = option(
        30,
        "journal-compact-percentage",
        "share of live data below which compaction begins, 1 to 75",
        unit="percent",
        minimum=0,
        maximum=100,
    )
    min_files: int = ignored(2, "journal-min-files", STORE_LAYOUT, unit="count")
    pool_files: int = ignored(-1, "journal-pool-files", STORE_LAYOUT, unit="count")
    datasync: bool = ignored(True, "journal-datasync", _ALWAYS)
    sync_transactional: bool = ignored(True, "journal-sync-transactional", _ALWAYS)
    sync_non_transactional: bool = ignored(True, "journal-sync-non-transactional", _ALWAYS)
    lock_acquisition_timeout_ms: int = option(
        -1,
        "journal-lock-acquisition-timeout",
        "how long a primary of a shared store waits for its turn before its process ends with status 75; -1 for ever."
        " Without a shared store a folder in use is refused at once",
        unit="ms",
        minimum=-1,
    )
    journal_type: str = ignored(
        "ASYNCIO",
        "journal-type",
        STORE_LAYOUT,
        choices={"ASYNCIO": "ASYNCIO", "NIO": "NIO", "MAPPED": "MAPPED"},
    )
    bindings_directory: str = ignored("data/bindings", "bindings-directory", STORE_LAYOUT)
    create_bindings_directory: bool = ignored(True, "create-bindings-dir", STORE_LAYOUT)
    create_journal_directory: bool = unbuilt(
        True,
        "create-journal-dir",
        "a journal folder that is missing is made: while its disk is not mounted, the node starts without its messages",
    )
    paging_directory: str = option(
        "data/paging", "paging-directory", "holds a folder of page files for each node id"
    )
    large_messages_directory: str = option(
        "data/largemessages",
        "large-messages-directory",
        "files of large messages, in a folder of the node's id; deleted at start when no message has them",
    )
    large_message_sync: bool = option(
        True, "large-message-sync", "durable large messages are on disk before they are confirmed"
    )
    node_manager_lock_directory: str | None = unbuilt(
        None,
        "node-manager-lock-directory",
        "the lock lies in the journal's folder: of nodes with this folder and journals of their own, each one serves",
    )
    buffer_timeout_ns: int | None = ignored(None, "journal-buffer-timeout", STORE_LAYOUT, unit="ns")
    buffer_size_bytes: int | None = ignored(None, "journal-buffer-size", STORE_LAYOUT, unit="bytes")
    max_io: int | None = ignored(None, "journal-max-io", STORE_LAYOUT, unit="count")
    device_block_size: int | None = ignored(
        None, "journal-device-block-size", STORE_LAYOUT, unit="count"
    )
    file_open_timeout_s: int = ignored(5, "journal-file-open-timeout", STORE_LAYOUT, unit="s")
    max_attic_files: int | None = ignored(None, "journal-max-attic-files", STORE_LAYOUT, unit="count")
    log_write_rate: bool = ignored(False, "log-journal-write-rate", LOGS)
    page_max_concurrent_io: int = ignored(5, "page-max-concurrent-io", THREADS, unit="count")
    page_sync_timeout_ns: int | None = ignored(None, "page-sync-timeout", STORE_LAYOUT, unit="ns")
    read_whole_page: bool = ignored(False, "read-whole-page", CACHES)
    purge_page_folders: bool = ignored(False, "purge-page-folders", STORE_LAYOUT)

    def journal_config(self, journal_id: bytes) -> JournalConfig:
        """Returns the journal's configuration. `journal_id` is the node id, 16 bytes."""
        percentage = min(max(self.compact_percentage, 1), COMPACT_PERCENTAGE_MAX)
        return JournalConfig(
            journal_id=journal_id,
            segment_size_bytes=self.file_size_bytes,
            compact_min_segments=max(self.compact_min_files, COMPACT_SEGMENTS_MIN),
            compact_percentage=percentage,
        )
