"""The line that tells an operator of an error of the client, without parts for developers."""

from __future__ import annotations

from typing import Final

from atalanta.client import ConnectionLost, ManagementFailed, NotAuthorized

# A login refused by Atalanta or Artemis; a missing permission has another text.
REFUSED_LOGIN: Final = ("unable to validate user", "amq229031")
CREDENTIALS: Final = "give --user and --password, or set ATALANTA_USER and ATALANTA_PASSWORD"


def line_of(error: Exception) -> str:
    """Formats an error as one line, without parts for developers."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    said = error.reason if isinstance(error, ManagementFailed) else str(error)
    text = " ".join((said or repr(error)).split())
    if isinstance(error, NotAuthorized) and any(mark in text.lower() for mark in REFUSED_LOGIN):
        return f"{text}; {CREDENTIALS}"
    if isinstance(error, ConnectionLost) and ("Errno 111" in text or "refused" in text):
        head, _, _ = text.partition(": ")
        return f"{head}: connection refused; is a broker running there?"
    return text


def why_of(error: BaseException) -> str:
    """Returns the reason why a node did not answer."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return line_of(error) if isinstance(error, Exception) else str(error)
