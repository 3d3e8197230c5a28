"""Exceptions that are planted at the calls of a command, each in a copy of the node.

A copy is a forked process: the node goes on from the state in which the command found it.
"""

from __future__ import annotations

import gc
import os
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any, TypeVar

import atalanta

SOURCE = os.path.dirname(atalanta.__file__)
T = TypeVar("T")
# By these the node lets its connections work: what they call is a command's.
ENTRIES = tuple(f"OpenConnections.{name}" for name in ("receive", "resume", "answer_logins"))
Place = tuple[str, str, str]  # file and function, and the function that called it


class Planted(Exception):
    """The exception that is planted."""


@dataclass
class Outcome:
    """What became of one copy. `error`: the exception that left the node, "" if it serves on."""

    error: str = ""
    failures: int = 0
    state: list[str] = field(default_factory=list)


def in_a_copy(work: Callable[[], T]) -> T:
    """Returns what `work` returns in a copy of this process."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        gc.disable()  # a collection would copy the pages of the whole process
        try:
            os.close(read)
            with os.fdopen(write, "wb") as pipe:
                try:
                    result: Any = (True, work())
                except BaseException as error:
                    result = (False, f"{type(error).__name__}: {error}")
                pickle.dump(result, pipe)
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        done, found = pickle.load(pipe)
    os.waitpid(child, 0)
    assert done, found
    return found  # type: ignore[no-any-return]


def _name(code: CodeType) -> str:
    return f"{code.co_filename[len(SOURCE) + 1 :]}:{code.co_qualname}"


def _place(frame: FrameType) -> Place | None:
    """The place of a call; None if it is not one of ours, or the entry by which the shell comes in."""
    code = frame.f_code
    if code.co_qualname in ENTRIES or not code.co_filename.startswith(SOURCE) or frame.f_back is None:
        return None
    caller = frame.f_back.f_code
    if not caller.co_filename.startswith(SOURCE):
        return None
    return code.co_filename[len(SOURCE) + 1 :], code.co_qualname, _name(caller)


def calls_of(work: Callable[[], None]) -> list[Place]:
    """Returns the calls that `work` makes, each once, in their order."""
    found: dict[Place, bool] = {}

    def trace(frame: FrameType, event: str, argument: object) -> None:
        place = _place(frame)
        if place is not None:
            found[place] = True

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return list(found)


def plant(place: Place, work: Callable[[], None]) -> None:
    """Does the work with an exception at the first such call."""
    function = place[1]

    def trace(frame: FrameType, event: str, argument: object) -> None:
        if frame.f_code.co_qualname == function and _place(frame) == place:
            sys.settrace(None)
            raise Planted(f"planted in {place[0]}:{place[1]}")

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
