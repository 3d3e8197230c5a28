"""Texts of configuration files for people: without passwords, those in comments as well."""

from __future__ import annotations

import re
from typing import Final

from atalanta.config.changes.request import ChangeRefused
from atalanta.config.changes.source import Tag, XmlSource
from atalanta.wire.uri import masked

STARS: Final = "****"
# Each pattern looks at a character a few times only: values come from users, and a search holds up the whole node.
WORD: Final = r"(?=[\w.:-]*?(?:password|passwd|secret|token|passphrase))[\w.:-]++"
# Elements, attributes, and `<param key="…Password" value="…"/>`, wherever they stand; names in TOML and in lists.
ELEMENT: Final = re.compile(rf"(?i)(<({WORD})(?:\s[^>]*)?>)([^<]+)(</)")
ATTRIBUTE: Final = re.compile(rf"(?i)(\s{WORD}\s*=\s*)(\"[^\"]*\"|'[^']*')")
KEYED: Final = re.compile(
    rf"(?i)((?:key|name)\s*=\s*[\"']{WORD}[\"']\s+value\s*=\s*)(\"[^\"]*\"|'[^']*')"
)
KEYED_BACK: Final = re.compile(
    rf"(?i)(value\s*=\s*)(\"[^\"]*\"|'[^']*')(\s+(?:key|name)\s*=\s*[\"']{WORD}[\"'])"
)
TOML: Final = re.compile(rf"(?im)^(\s*(?:#\s*)?[\"']?{WORD}[\"']?\s*=\s*)(\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''|.+)$")
ADDRESS: Final = re.compile(r"(?<![^\s\"'<>])[^\s\"'<>]*?://[^\s\"'<>]*+")
OPTION: Final = re.compile(rf"(?i)([?&;]\s{{0,4}}{WORD}\s{{0,4}}=\s{{0,4}})(?!\*)[^;&)\s'\",<]+")
HASHED: Final = "ENC("


def masked_text(text: str) -> str:
    """Returns the text with **** for each password. A masked one, ENC(…), stays."""
    try:
        text = _without_data(text, XmlSource(text).root)
    except (ChangeRefused, ValueError):
        text = TOML.sub(lambda found: found[1] + _shown_toml(found[2]), text)
    text = ELEMENT.sub(lambda found: found[1] + _shown(found[3]) + found[4], text)
    text = ATTRIBUTE.sub(lambda found: found[1] + _shown_quoted(found[2]), text)
    text = KEYED.sub(lambda found: found[1] + _shown_quoted(found[2]), text)
    text = KEYED_BACK.sub(lambda found: found[1] + _shown_quoted(found[2]) + found[3], text)
    # ENC(…) in addresses is hidden, too: it has no end that is certain.
    text = ADDRESS.sub(lambda found: masked(found[0]), text)
    return OPTION.sub(lambda found: found[1] + STARS, text)


def _without_data(text: str, root: Tag) -> str:
    """Hides the contents of elements with such names that a pattern does not see: CDATA, comments between."""
    places: list[tuple[int, int]] = []
    waiting: list[Tag] = [root]
    while waiting:
        tag = waiting.pop()
        waiting += tag.children
        if re.fullmatch(rf"(?i){WORD}", tag.name) and tag.value.strip() and not tag.value.strip().startswith(HASHED):
            places.append((tag.inner, tag.closing))
    for start, end in sorted(places, reverse=True):
        text = text[:start] + STARS + text[end:]
    return text


def _shown(value: str) -> str:
    return value if value.strip().startswith(HASHED) or not value.strip() else STARS


def _shown_quoted(value: str) -> str:
    return value[0] + _shown(value[1:-1]) + value[0]


def _shown_toml(value: str) -> str:
    return value if value.strip().strip("\"'").startswith((HASHED, "[")) else f'"{STARS}"'
