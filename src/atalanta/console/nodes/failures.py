"""Failures between the console and a node, in words for the page."""

from __future__ import annotations

import re
from typing import Final

from atalanta.client import (
    AddressDoesNotExist,
    CallTimedOut,
    ClientError,
    ConnectionLost,
    ManagementFailed,
    NotAuthorized,
    QueueDoesNotExist,
)

# A refusal of Artemis and of Atalanta: "AMQ229032: User: x does not have permission='EDIT' on address y".
REFUSAL: Final = re.compile(r"permission='(\w+)'.{0,40}? on (?:address|queue) (\S+)")
LOGIN_REFUSED: Final = ("AMQ229031", "unable to validate user", "Unable to validate user")
REFUSED: Final = ("Errno 111", "refused", "Connect call failed")
MISSING: Final = ("AMQ229067", "AMQ229017", "AMQ229049", "AMQ229203", "does not exist", "Cannot find")
# The names of permissions in broker.xml, by their letters alone.
PERMISSIONS: Final = {
    name.lower(): name
    for name in (
        "send", "consume", "browse", "manage", "createAddress", "deleteAddress", "createDurableQueue",
        "deleteDurableQueue", "createNonDurableQueue", "deleteNonDurableQueue", "view", "edit",
    )
}  # fmt: skip


class NodeUnreachable(Exception):
    """A node does not answer now; `at` is its place."""

    def __init__(self, at: str, why: str) -> None:
        super().__init__(f"{at}: {why}")
        self.at = at
        self.why = why


class NotFound(Exception):
    """The subject of a page does not exist; the text says what."""


class MalformedAnswer(ValueError):
    """An answer of a node that is not what its operation answers; the text says which."""


class InUse(Exception):
    """A thing that is not removed, because somebody uses it or it holds messages; the text says who and how many."""


class MissingPermission:
    """The permission that a user lacks, and the lines of broker.xml that give it to a role."""

    def __init__(self, permission: str, match: str) -> None:
        self.permission = PERMISSIONS.get(permission.replace("_", "").lower(), permission)
        self.match = match

    @property
    def element(self) -> str:
        """Returns the element of <security-settings>, with a role to be filled in."""
        return (
            f'<security-setting match="{self.match}">\n'
            f'  <permission type="{self.permission}" roles="ROLE"/>\n'
            "</security-setting>"
        )


def missing_permission(error: BaseException) -> MissingPermission | None:
    """Returns the permission that a node has found missing, None for another error."""
    found = REFUSAL.search(error_text(error))
    return None if found is None else MissingPermission(found.group(1), found.group(2).rstrip(".,;"))


def is_login_refused(error: BaseException) -> bool:
    """Returns whether a node does not accept the user's name and password."""
    return isinstance(error, NotAuthorized) and any(mark in error.text for mark in LOGIN_REFUSED)


def is_missing(error: BaseException) -> bool:
    """Returns whether the node says that a thing does not exist."""
    if isinstance(error, QueueDoesNotExist | AddressDoesNotExist | NotFound):
        return True
    return isinstance(error, ManagementFailed) and any(mark in error.reason for mark in MISSING)


def error_text(error: BaseException) -> str:
    """Returns an error as one line, without the parts for developers."""
    if isinstance(error, ManagementFailed):
        return error.reason
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ConnectionLost) and any(mark in error.text for mark in REFUSED):
        return "connection refused; is a broker running there?"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return " ".join(str(error).split()) or type(error).__name__


def is_away(error: BaseException) -> bool:
    """Returns whether a node could not be asked at all, as opposed to an answer that is a refusal."""
    if isinstance(error, NodeUnreachable | ConnectionLost | CallTimedOut | OSError):  # TimeoutError is an OSError
        return True
    return isinstance(error, ClientError) and not isinstance(error, ManagementFailed) and error.code < 0
