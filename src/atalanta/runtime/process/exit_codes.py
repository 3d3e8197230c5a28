"""Exit statuses of `atalanta run`; numbers as in sysexits.h where that has one."""

from __future__ import annotations

from typing import Final

STOPPED: Final = 0  # the node stopped in good order
USAGE: Final = 2  # wrong arguments
MESSAGES_LEFT: Final = 3  # scale-down: messages could not be moved and stay in the journal
BAD_DATA: Final = 65  # the data folder is damaged, or of another format version
UNAVAILABLE: Final = 69  # an address cannot be bound: the port is in use, or the address is not of this machine
BUG: Final = 70  # an internal error (the log has the traceback), or critical-analyzer-policy HALT
DISK_FAILED: Final = 74  # a write or sync failed: the node confirms nothing more
FOLDER_TAKEN: Final = 75  # another process uses the data folder
BAD_CONFIGURATION: Final = 78  # the configuration has errors
INTERRUPTED: Final = 130  # Ctrl-C
