"""The end of a command: its exit status, and one line for an error. A user's mistakes cause no traceback.

Numbers are those of sysexits.h where it has one, as in runtime/process/exit_codes.py.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import typer

from atalanta.client import (
    AddressDoesNotExist,
    CallTimedOut,
    ClientError,
    ConnectionLost,
    ManagementFailed,
    NotAuthorized,
    QueueDoesNotExist,
    SendFailed,
    UriError,
)
from atalanta.config.users.users_file import UnknownUser, UsersError
from atalanta.kernel.ports import PageError
from atalanta.message.encoding.buffer import DecodeError
from atalanta.runtime.disk.folder_lock import DataFolderDamaged, DataFolderError
from atalanta.runtime.process.exit_codes import (
    BAD_DATA,
    DISK_FAILED,
    FOLDER_TAKEN,
    UNAVAILABLE,
)
from atalanta.runtime.process.exit_codes import INTERRUPTED as INTERRUPTED
from atalanta.runtime.process.exit_codes import USAGE as USAGE
from atalanta.store.errors import JournalDamaged, JournalForeign
from atalanta.survey.error_line import line_of as line_of

FAILED: Final = 1  # refused, fewer messages came than --count, or a check found errors
NOT_THERE: Final = 66  # no such queue, address, user, folder or file
CANNOT_WRITE: Final = 73  # a file exists already, or may not be opened
TIMED_OUT: Final = 75  # no answer in time
NOT_ALLOWED: Final = 77  # wrong user or password, or a missing permission
READER_GONE: Final = 141  # the reader of the output has ended (a closed pipe)


class Refused(Exception):
    """A command cannot be carried out; the text gives the reason, `status` is its exit status."""

    def __init__(self, text: str, status: int = FAILED) -> None:
        super().__init__(text)
        self.status = status


@contextmanager
def reported() -> Iterator[None]:
    """Turns the errors of a command into one line on stderr and an exit status."""
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        # Otherwise the interpreter would report the error again when it flushes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(READER_GONE) from None
    except (UriError, Refused, UsersError, DataFolderError, OSError) as error:
        raise ended(line_of(error), status_of(error)) from error
    except (ClientError, JournalDamaged, JournalForeign, DecodeError, PageError) as error:
        raise ended(line_of(error), status_of(error)) from error


def status_of_files(paths: list[Path], status: int = FAILED) -> int:
    """Returns the exit status for files that cannot be used: 66 if one of them is missing, else `status`."""
    missing = [path for path in paths if str(path) != "-" and not os.path.exists(path)]
    return NOT_THERE if missing else status


def confirm(question: str, yes: bool) -> None:
    """Asks before messages are removed, unless `yes`. Refused (1) for another answer, (2) without a terminal."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Refused(f"{question}? --yes is needed without a terminal", USAGE)
    try:
        sure = typer.confirm(f"{question}?", err=True)
    except typer.Abort:  # Ctrl-C or the end of the input
        raise Refused("nothing was done", INTERRUPTED) from None
    if not sure:
        raise Refused("nothing was done")


def ended(line: str, status: int) -> typer.Exit:
    """Prints the line; the caller raises the result."""
    typer.echo(f"atalanta: {line}", err=True)
    return typer.Exit(status)


def status_of(error: Exception) -> int:
    """Returns the exit status for an error of the client, the journal or the system."""
    if isinstance(error, Refused):
        return error.status
    if isinstance(error, UsersError) and isinstance(error.__cause__, OSError):
        return status_of(error.__cause__)
    if isinstance(error, SendFailed):
        return status_of(error.errors[0])
    if isinstance(error, ManagementFailed):
        return NOT_THERE if is_missing(error.reason) else FAILED
    for kinds, status in (
        ((UriError,), USAGE),
        ((NotAuthorized,), NOT_ALLOWED),
        ((QueueDoesNotExist, AddressDoesNotExist, UnknownUser, FileNotFoundError), NOT_THERE),
        ((CallTimedOut,), TIMED_OUT),
        ((ConnectionLost,), UNAVAILABLE),
        ((DataFolderDamaged,), BAD_DATA),
        ((DataFolderError,), FOLDER_TAKEN),
        ((JournalDamaged, JournalForeign, DecodeError, PageError), BAD_DATA),
        ((FileExistsError, PermissionError), CANNOT_WRITE),
        ((OSError,), DISK_FAILED),
    ):
        if isinstance(error, kinds):
            return status
    return FAILED


def is_missing(reason: str) -> bool:
    """Returns whether management reports that something does not exist, by Artemis' number or by text."""
    marks = ("AMQ229067", "AMQ229017", "AMQ229049", "AMQ229203", "does not exist", "Cannot find")
    return any(mark in reason for mark in marks)
