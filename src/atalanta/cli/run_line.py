"""The command line of `atalanta run`, read without typer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class RunLine:
    """The arguments of `atalanta run`; the defaults are those of application.run."""

    broker_xml: Path
    log_level: str = "info"
    web: str | None = None
    log_json: bool = False
    guarded: bool = True
    alone: bool = False
    console: str | None = None


def read_run_line(words: Sequence[str]) -> RunLine | None:
    """Parses `words`, the arguments after `atalanta`.

    Returns None for anything but `run`, one path, and options with their values: typer handles these cases and
    reports errors.
    """
    if not words or words[0] != "run":
        return None
    paths: list[str] = []
    values: dict[str, str] = {}
    log_json = False
    guarded = True
    alone = False
    at = 1
    while at < len(words):
        word = words[at]
        at += 1
        name, separator, value = word.partition("=")
        if word == "--log-json":
            log_json = True
        elif word == "--no-guard":
            guarded = False
        elif word == "--alone":
            alone = True
        elif word == "--console":
            values.setdefault("--console-listen", "")
        elif name in ("--log-level", "--web", "--console-listen"):
            if not separator:
                if at == len(words) or words[at].startswith("-"):
                    return None
                value = words[at]
                at += 1
            values[name] = value
        elif word.startswith("-") or not word:
            return None
        else:
            paths.append(word)
    if len(paths) != 1:
        return None
    level = values.get("--log-level", "info")
    return RunLine(Path(paths[0]), level, values.get("--web"), log_json, guarded, alone, values.get("--console-listen"))
