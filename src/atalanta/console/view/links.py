"""PageLinks of the console: all of them begin with the path of the reverse proxy, if there is one."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlencode

# A page of the console that a log-in returns to: never another host, never something that ends a header line.
OWN_PAGE: Final = re.compile(r"/(?:[a-z][a-z-]{0,40}(?:/[a-z][a-z-]{0,40})?)?(?:\?[\x21-\x5b\x5d-\x7e]{0,2000})?")


class PageLinks:
    """The links below one base path, "" or "/console"."""

    def __init__(self, base: str) -> None:
        self.base = base

    def to(self, path: str, **parameters: object) -> str:
        """Returns the link to a page with parameters; empty ones are left out."""
        given = [(name, str(value)) for name, value in parameters.items() if value not in (None, "")]
        query = f"?{urlencode(given)}" if given else ""
        return f"{self.base}{path}{query}"

    def inner(self, path_and_query: str) -> str:
        """Returns the part of a link behind the base path, for `own_page`."""
        return path_and_query.removeprefix(self.base) or "/"


def own_page(text: str) -> str:
    """Returns the text if it is a page of the console below its base path, else the first page."""
    return text if OWN_PAGE.fullmatch(text) else "/"
