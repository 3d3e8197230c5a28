"""Operations on users: the node's process changes the files of users and roles, and the reply follows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.security.user_operation import (
    ADD,
    LIST,
    REMOVE,
    RESET,
    UserAnswer,
    UserOperation,
)
from atalanta.management.request.call import (
    LATER,
    Call,
    Operations,
    Parameters,
    flag_of,
    optional_text,
)
from atalanta.management.request.json_text import encode_json

if TYPE_CHECKING:
    from atalanta.kernel.ports import Process, Trace
    from atalanta.management.request.replies import Replies

WAITING_MAX: Final = 100


class UserOperations:
    """The operations of the resource `broker` on users (ActiveMQServerControl). `waiting` has the calls by token."""

    def __init__(self, process: Process, replies: Replies, trace: Trace) -> None:
        self.process = process
        self.replies = replies
        self.trace = trace
        self.waiting: dict[int, tuple[Call, UserOperation]] = {}
        self.last_token = 0
        self.operations: Operations = {
            "listUser": [("S", self.list_users)],
            "addUser": [("SSSb", self.add)],
            "removeUser": [("S", self.remove)],
            "resetUser": [("SSSb", self.reset), ("SSS", self.reset)],
        }

    def list_users(self, call: Call, given: Parameters) -> object:
        """Returns JSON, for all users or the named one: `username` and `roles`. An unknown user has no roles."""
        return self._begin(call, UserOperation(LIST, optional_text(given, 0) or ""))

    def add(self, call: Call, given: Parameters) -> object:
        """(username, password, roles separated by commas, plaintext)."""
        password, roles = optional_text(given, 1), roles_of(given)
        if password is None or roles is None:
            raise BrokerError(ILLEGAL_STATE, "addUser takes a username, a password and roles")
        plain = flag_of(given, 3)
        return self._begin(call, UserOperation(ADD, user_of(given), password, roles, plain))

    def remove(self, call: Call, given: Parameters) -> object:
        return self._begin(call, UserOperation(REMOVE, user_of(given)))

    def reset(self, call: Call, given: Parameters) -> object:
        """(username, password, roles, plaintext): null leaves the password or the roles unchanged.

        Without the fourth parameter the password is stored in plain text, as in Artemis.
        """
        plain = len(given) < 4 or flag_of(given, 3)
        operation = UserOperation(
            RESET, user_of(given), optional_text(given, 1), roles_of(given), plain
        )
        return self._begin(call, operation)

    def _begin(self, call: Call, operation: UserOperation) -> object:
        if len(self.waiting) >= WAITING_MAX:
            raise BrokerError(ILLEGAL_STATE, f"{WAITING_MAX} operations on users are under way")
        self.last_token += 1
        self.process.operate_users(self.last_token, operation)
        self.waiting[self.last_token] = (call, operation)
        return LATER

    def finished(self, now: int, token: int, answer: UserAnswer) -> None:
        """Sends the reply of the operation `token`."""
        call, operation = self.waiting.pop(token)
        if answer.why:
            self.replies.refuse(now, call, answer.why)
            return
        result: object = None
        if operation.kind == LIST:
            rows = [{"username": name, "roles": list(roles)} for name, roles in answer.users]
            result = encode_json(rows)
        else:
            self.trace.event(
                "user_changed", {"operation": operation.kind, "user": operation.user}
            )
        self.replies.send(now, call, result, True, False)


def user_of(given: Parameters) -> str:
    """Returns the user's name. BrokerError if it is missing."""
    name = optional_text(given, 0)
    if not name:
        raise BrokerError(ILLEGAL_STATE, "the username is missing")
    return name


def roles_of(given: Parameters) -> tuple[str, ...] | None:
    """Returns the roles of a text that separates them by commas; None for null."""
    text = optional_text(given, 2)
    if text is None:
        return None
    return tuple(dict.fromkeys(role.strip() for role in text.split(",") if role.strip()))
