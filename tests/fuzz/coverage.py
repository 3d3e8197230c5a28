"""Which steps from line to line an input takes through our code, cheap enough to ask often.

sys.settrace slows code down some tenfold, so only a sample of the inputs is watched. Compiled modules have no lines:
there nothing is ever new.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import atalanta

FOLDER = str(atalanta.__file__).removesuffix("__init__.py")
# A function that showed nothing new in so many calls is looked at once in a while only.
CALLS_OF_INTEREST = 3000
LATER_EVERY = 64

LocalTrace = Callable[[FrameType, str, Any], Any]


class Edges:
    """`watch` runs a call and tells whether it took a step that none before it took."""

    def __init__(self) -> None:
        self.seen: set[tuple[int, int, int]] = set()
        self.fresh = False
        self._codes: dict[CodeType, int] = {}
        self._numbers: dict[CodeType, int] = {}

    def watch(self, call: Callable[[], object]) -> bool:
        self.fresh = False
        sys.settrace(self._enter)
        try:
            call()
        finally:
            sys.settrace(None)
        return self.fresh

    def _enter(self, frame: FrameType, event: str, argument: object) -> LocalTrace | None:
        code = frame.f_code
        calls = self._codes.get(code)
        if calls is None:
            calls = 0 if code.co_filename.startswith(FOLDER) else -1
            self._numbers[code] = len(self._numbers)
        if calls < 0:
            self._codes[code] = -1
            return None
        self._codes[code] = calls + 1
        if calls > CALLS_OF_INTEREST and calls % LATER_EVERY:
            return None
        number = self._numbers[code]
        seen = self.seen
        before = 0

        def line(frame: FrameType, event: str, argument: object) -> LocalTrace:
            nonlocal before
            if event == "line":
                at = frame.f_lineno
                edge = (number, before, at)
                before = at
                if edge not in seen:
                    seen.add(edge)
                    self.fresh = True
                    self._codes[code] = 0
            return line

        return line
