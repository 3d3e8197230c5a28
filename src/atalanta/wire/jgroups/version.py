"""The version of JGroups on the wire: 16 bits, major << 11, minor << 6, micro (org.jgroups.Version).

A member takes every micro version of its own major.minor, its line, and drops all others.
"""

from __future__ import annotations

from typing import Final

from atalanta.message.encoding.digits import all_digits

FOUR: Final = 4 << 11
FIVE: Final = 5 << 11
FIRST: Final = 3 << 11 | 6 << 6  # 3.6: the oldest line that is spoken
END: Final = 6 << 11
# A micro version of each line that shipped with Artemis or WildFly, the likeliest first.
LIKELY: Final = (
    5 << 11 | 3 << 6 | 13,
    5 << 11 | 2 << 6,
    3 << 11 | 6 << 6 | 13,
    4 << 11 | 2 << 6 | 21,
    5 << 11 | 4 << 6 | 11,
    5 << 11 | 5 << 6 | 6,
)


class VersionError(ValueError):
    """The text is no version of JGroups."""


def version_of(text: str) -> int:
    """Returns the version of "5.3" or "5.3.13". VersionError."""
    parts = text.strip().split(".")
    if len(parts) not in (2, 3) or not all(all_digits(part, 2) for part in parts):
        raise VersionError(f"'{text}' is not a version of JGroups such as 5.3 or 5.3.13")
    major, minor, micro = (int(part) for part in [*parts, "0"][:3])
    version = major << 11 | minor << 6 | micro
    if minor > 31 or micro > 63 or not is_spoken(version):
        raise VersionError(f"'{text}' is not a version of JGroups from 3.6 to 5.x")
    if len(parts) == 2:
        return next((likely for likely in LIKELY if line_of(likely) == line_of(version)), version)
    return version


def is_spoken(version: int) -> bool:
    """Returns True for the versions 3.6 to 5.x."""
    return FIRST <= version < END


def line_of(version: int) -> int:
    """Returns the line, major.minor, as a number."""
    return version >> 6


def version_text(version: int) -> str:
    """Returns a text such as "5.3.13"."""
    return f"{version >> 11}.{version >> 6 & 31}.{version & 63}"


def to_try(named: int, heard: list[int]) -> list[int]:
    """Returns the versions to try at a host that has not shown its own, one of each line: those that were `heard` of
    others, then the one that the configuration names, or without that (0) the likeliest."""
    found: dict[int, int] = {}
    for version in [*heard, *((named,) if named else LIKELY)]:
        found.setdefault(line_of(version), version)
    return list(found.values())
