"""A JVM of ours that answers line by line to what it is told."""

from __future__ import annotations

import selectors
import subprocess
from typing import Self

from .tools import SMALL_JVM, class_path, java

ANSWER_SECONDS = 90.0


class ProgramError(RuntimeError):
    """The program refused a command; the message is its exception."""


class JavaProgram:
    """`with JavaProgram("Driver", …) as program:` is the main class of that name; it is killed in the end.

    `classes` is its class path, that of tests/interop/java without one.
    """

    def __init__(self, main: str, *arguments: str, classes: str | None = None) -> None:
        name = main if "." in main else f"atalanta.interop.{main}"
        command = [java(), "-Xmx512M", *SMALL_JVM, "-cp", class_path() if classes is None else classes, name]
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

    def tell(self, *fields: object) -> list[str]:
        """One command line of a driver: the fields of its answer. ProgramError if it failed."""
        self._tell("\t".join(str(field) for field in fields))
        line = self._answered()
        if line is None:
            raise ProgramError(f"no answer to {fields} within {ANSWER_SECONDS} s")
        answer = line.rstrip("\n").split("\t")
        if answer[0] != "ok":
            raise ProgramError(f"{fields}: {' '.join(answer[1:]) or 'the program ended'}")
        return answer[1:]

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
