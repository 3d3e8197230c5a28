"""Errors of Spark as one line with a remedy."""

from __future__ import annotations

import re
from typing import Final

OURS: Final = re.compile(r"atalanta\.spark\.errors\.(\w+): ([^\n]+)")
PYTHON: Final = re.compile(r"^((?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception)): ([^\n]+)", re.MULTILINE)
JAVA: Final = "An error occurred while calling "  # then an object of Py4J, and the exception in the next line
PLACE: Final = re.compile(r"\bline (\d+),? pos (\d+)")

AGAIN: Final = "remove the cause and start the pipeline again: it goes on from its checkpoints"
REMEDIES: Final = {
    "DataLost": "look where the messages went; with option failOnDataLoss = false the query goes on without them",
    "LeaseEnded": "start the pipeline again when it shall have the queue: it goes on from its checkpoints",
    "LeaseTaken": "one query reads a queue, and no consumer beside it: stop the other one, or name another queue",
    "LoginRefused": "correct user, password or the user's roles at the node; then start the pipeline again",
    "QueueMissing": "create the queue at every node, or correct option queue",
    "NodeTimeout": "start the node; then start the pipeline again",
    "NodeUnavailable": "start the node; then start the pipeline again",
    "LogViewMissing": "read from Atalanta nodes only",
    "OptionError": "correct the option in the file",
    "BatchDecided": "the checkpoint is older than the data: use the newest one",
}


def brief(text: str) -> str:
    """Returns the line of an error text that says what is wrong, without tracebacks."""
    ours = OURS.findall(text)
    if ours:
        return str(ours[-1][1]).strip()
    python = PYTHON.findall(text)
    if "Traceback" in text and python:
        return ": ".join(python[-1]).strip()
    lines = [line.strip() for line in text.partition("JVM stacktrace")[0].splitlines()]
    if lines and lines[0].startswith(JAVA):
        lines = [line.removeprefix(": ") for line in lines[1:]]
    said = next((line for line in lines if line), "unknown error").partition(" SQLSTATE: ")[0]
    place = PLACE.search(text)
    at = f", line {place[1]} position {place[2]} of the SQL" if place is not None else ""
    return said.rstrip(".;") + at


def remedy(text: str) -> str:
    """Returns what to do about an error text."""
    ours = OURS.findall(text)
    return REMEDIES.get(ours[-1][0], AGAIN) if ours else AGAIN
