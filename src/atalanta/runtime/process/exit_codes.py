"""Exit statuses of `atalanta run`; numbers as in sysexits.h where that has one."""

from __future__ import annotations

from typing import Final

STOPPED: Final = 0
MESSAGES_LEFT: Final = 3  # it was to give all its messages to another node, and could not
BAD_DATA: Final = 65  # the data folder holds what cannot be trusted
UNAVAILABLE: Final = 69  # a port is taken, an address is not ours
BUG: Final = 70  # an error of ours: the log has the traceback
DISK_FAILED: Final = 74  # writing or syncing failed: nothing can be confirmed any more
FOLDER_TAKEN: Final = 75  # another process uses the data folder
BAD_CONFIGURATION: Final = 78
