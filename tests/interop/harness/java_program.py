"""A JVM of ours that answers line by line to what it is told."""

from __future__ import annotations

import selectors
import subprocess
from typing import Self

from .tools import SMALL_JVM, class_path, java

ANSWER_SECONDS = 90.0


class JavaProgram:
    """`with JavaProgram("Driver", …) as program:` is the main class of that name; it is killed in the end.

    With a class path of its own the name is that of the whole class.
    """

    def __init__(self, main: str, *arguments: str, path: str = "") -> None:
        name = main if path else f"atalanta.interop.{main}"
        command = [java(), "-Xmx512M", *SMALL_JVM, "-cp", path or class_path(), name]
        self._process = subprocess.Popen(
            [*command, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self._lines = selectors.DefaultSelector()
        assert self._process.stdout is not None
        self._lines.register(self._process.stdout, selectors.EVENT_READ)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._lines.close()

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def _answered(self) -> str | None:
        """A line, "" from a program that ended; None within ANSWER_SECONDS."""
        assert self._process.stdout is not None
        if not self._lines.select(ANSWER_SECONDS):
            return None
        return self._process.stdout.readline()
