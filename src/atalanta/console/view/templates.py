"""The templates, Jinja2 with autoescape. Whatever comes from a node is text here, and is shown as text."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from atalanta import __version__
from atalanta.console.view.links import PageLinks
from atalanta.survey.flow import rate
from atalanta.survey.texts import duration_text

KEPT: Final = "\n\t"
TIME_MAX_MS: Final = 1 << 47
UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


def environment(links: PageLinks, assets: Mapping[str, str]) -> Environment:
    """Returns the environment of all templates. `assets` are the static files' digests by name."""
    made = Environment(
        loader=PackageLoader("atalanta.console", "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.globals["link"] = links.to
    # With its digest, so that a browser keeps a file until it changes.
    made.globals["asset"] = lambda name: links.to(f"/static/{name}", v=assets[name])
    made.globals["version"] = __version__
    made.filters["number"] = number
    made.filters["octets"] = octets
    made.filters["instant"] = instant
    made.filters["shortened"] = shortened
    made.filters["yes"] = yes
    made.filters["rate"] = rate_text
    made.filters["duration"] = duration_text
    return made


def visible(value: object) -> object:
    """Returns what an expression of a template shows: nothing for None, and no control characters.

    Characters that turn the direction of text, end a line or belong to no text are written out: a name must not look
    like another.
    """
    if value is None:
        return ""
    if isinstance(value, Markup) or not isinstance(value, str) or value.isprintable():
        return value
    return "".join(
        each if each.isprintable() or each in KEPT else each.encode("unicode_escape").decode("ascii") for each in value
    )


def number(value: object) -> str:
    """Returns a count with separators; a dash for a count that nobody told."""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else "–"


def rate_text(value: object) -> str:
    """Returns messages a second; a dash before there are two samples."""
    return rate(value) if isinstance(value, float | int) else "–"


def octets(value: object) -> str:
    """Returns a size in a unit that is easy to read."""
    if not isinstance(value, int) or isinstance(value, bool):
        return "–"
    size = float(value)
    for unit in UNITS:
        if abs(size) < 1_024 or unit == UNITS[-1]:
            return f"{size:.0f} {unit}" if unit == UNITS[0] else f"{size:.1f} {unit}"
        size /= 1_024
    raise AssertionError("the last unit returns")


def instant(at_ms: object) -> Markup | str:
    """Returns a <time> element in UTC, which static/times.js turns into local time; a dash for no time."""
    if not isinstance(at_ms, int) or not 0 < at_ms < TIME_MAX_MS:
        return "–"
    at = datetime.fromtimestamp(at_ms / 1_000, UTC)
    exact = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return Markup('<time datetime="{}">{} UTC</time>').format(exact, at.strftime("%Y-%m-%d %H:%M:%S"))


def shortened(text: object, length: int = 80) -> str:
    """Returns the beginning of a text in one line."""
    line = " ".join(str(text or "").split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


def yes(value: object) -> str:
    """Returns yes, no, or a dash for what nobody told."""
    return {True: "yes", False: "no"}.get(value, "–") if isinstance(value, bool) else "–"
