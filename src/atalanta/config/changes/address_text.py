"""The address of an acceptor or connector as text, `tcp://host:port?key=value;key=value`: single parts of it change,
and the rest stays as it is written."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote_plus

from atalanta.config.changes.request import ChangeRefused
from atalanta.wire.uri import DEFAULT_PORT, SAFE, UriError, parse_authority, parse_params

HOST: Final = "host"
PORT: Final = "port"
SEPARATOR: Final = re.compile(r"[;&]")


def address_values(text: str) -> dict[str, str]:
    """Returns host, port and parameters of an address. UriError."""
    _, _, rest = text.strip().partition("://")
    authority, _, query = rest.partition("?")
    host, port = parse_authority(authority)
    return {HOST: host, PORT: str(DEFAULT_PORT if port is None else port), **parse_params(query, True)}


def with_part(text: str, name: str, value: str | None) -> str:
    """Returns the address with another host, port or parameter; None takes a parameter out. ChangeRefused."""
    scheme, separator, rest = text.strip().partition("://")
    authority, mark, query = rest.partition("?")
    if name in (HOST, PORT):
        try:
            host, port = parse_authority(authority)
        except UriError as error:
            raise ChangeRefused(str(error)) from error
        if name == HOST:
            host = value or ""
        elif value is not None and not re.fullmatch(r"[0-9]{1,5}", value):
            raise ChangeRefused(f"the port '{value}' is not a number")
        else:
            port = None if value is None else int(value)
        if not host or re.search(r"[\s/?#@\[\]]", host):
            raise ChangeRefused(f"'{host}' is not a host")
        shown = f"[{host}]" if ":" in host else host
        return f"{scheme}{separator}{shown}" + ("" if port is None else f":{port}") + mark + query
    query = _with_param(query, name, value)
    return f"{scheme}{separator}{authority}" + (f"?{query}" if query else "")


def _with_param(query: str, name: str, value: str | None) -> str:
    """Returns the query with another value of one parameter. Of a repeated one the last counts, and only it stays."""
    parts = SEPARATOR.split(query) if query else []
    separators = SEPARATOR.findall(query)
    places = [at for at, part in enumerate(parts) if unquote_plus(part.partition("=")[0].strip()) == name]
    written = None if value is None else f"{name}={quote(value, SAFE)}"
    if not places:
        if written is None:
            return query
        joint = separators[-1] if separators else ";"
        return query + (joint if parts and parts[-1] else "") + written
    last = places[-1]
    kept: list[str] = []
    joint = separators[0] if separators else ";"
    for at, part in enumerate(parts):
        if at == last and written is not None:
            kept.append(written)
        elif at not in places:
            kept.append(part)
    if len(kept) == len(parts):
        return "".join(part + (separators[at] if at < len(separators) else "") for at, part in enumerate(kept))
    return joint.join(kept)
