"""Users by message: requests of `artemis user`, the process that changes the files, and the replies."""

from __future__ import annotations

import pytest

from atalanta.kernel.ports import Process
from atalanta.kernel.security.user_operation import (
    ADD,
    LIST,
    REMOVE,
    RESET,
    UserAnswer,
    UserOperation,
)
from tests.management.management_rig import Desk, Refused


class Files(Process):
    """Remembers the operations."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, UserOperation]] = []

    def operate_users(self, token: int, operation: UserOperation) -> None:
        self.asked.append((token, operation))


@pytest.fixture
def files() -> Files:
    return Files()


@pytest.fixture
def desk(files: Files) -> Desk:
    return Desk(process=files)


def answered(desk: Desk, files: Files, answer: UserAnswer) -> object:
    """The reply to the oldest operation."""
    token, _ = files.asked.pop(0)
    desk.management.users.finished(desk.now, token, answer)
    return desk.answer()


def test_the_arguments_of_artemis(desk: Desk, files: Files) -> None:
    for operation, given, wanted in (
        ("addUser", ("ann", "pw", "amq, view,", False), UserOperation(ADD, "ann", "pw", ("amq", "view"))),
        ("addUser", ("ann", "pw", "amq", True), UserOperation(ADD, "ann", "pw", ("amq",), True)),
        ("removeUser", ("ann",), UserOperation(REMOVE, "ann")),
        ("resetUser", ("ann", None, "amq", False), UserOperation(RESET, "ann", None, ("amq",))),
        ("resetUser", ("ann", "pw", None, False), UserOperation(RESET, "ann", "pw")),
        ("resetUser", ("ann", "pw", None), UserOperation(RESET, "ann", "pw", plain=True)),
    ):
        desk.put("broker", operation, *given)
        assert files.asked[0][1] == wanted
        assert answered(desk, files, UserAnswer()) is None


def test_users_are_listed_as_the_artemis_command_reads_them(desk: Desk, files: Files) -> None:
    for name, wanted in (("", ""), (None, ""), ("ann", "ann")):
        desk.put("broker", "listUser", name)
        assert files.asked[0][1] == UserOperation(LIST, wanted)
        users = UserAnswer(users=(("ann", ("amq", "view")), ("ben", ())))
        assert answered(desk, files, users) == (
            '[{"username":"ann","roles":["amq","view"]},{"username":"ben","roles":[]}]'
        )


def test_replies_go_to_their_requests(desk: Desk, files: Files) -> None:
    desk.put("broker", "removeUser", "ann")
    desk.put("broker", "addUser", "ben", "pw", "amq", False)
    with pytest.raises(Refused, match="AMQ229224: User ann does not exist"):
        answered(desk, files, UserAnswer("AMQ229224: User ann does not exist"))
    assert answered(desk, files, UserAnswer()) is None
    fields = {"operation": "add", "user": "ben"}
    assert [each for each in desk.trace.events if each[0] == "user_changed"] == [("user_changed", fields)]


@pytest.mark.parametrize(
    ("operation", "given"),
    [
        ("addUser", (None, "pw", "amq", False)),
        ("addUser", ("", "pw", "amq", False)),
        ("addUser", ("ann", None, "amq", False)),
        ("addUser", ("ann", "pw", None, False)),
        ("addUser", ("ann", "pw", "amq", None)),
        ("removeUser", (None,)),
        ("resetUser", (None, "pw", "amq", False)),
    ],
)
def test_what_is_missing_is_refused(
    desk: Desk, files: Files, operation: str, given: tuple[object, ...]
) -> None:
    with pytest.raises(Refused):
        desk.ask("broker", operation, *given)
    assert files.asked == []


def test_operations_under_way_are_limited(desk: Desk, files: Files) -> None:
    for _ in range(100):
        desk.put("broker", "removeUser", "ann")
    with pytest.raises(Refused, match="100 operations on users are under way"):
        desk.ask("broker", "removeUser", "ann")
    assert answered(desk, files, UserAnswer()) is None
    desk.put("broker", "removeUser", "ann")
    assert len(files.asked) == 100


def test_a_node_without_files_refuses() -> None:
    with pytest.raises(Refused, match="no files of users"):
        Desk().ask("broker", "listUser", "")
