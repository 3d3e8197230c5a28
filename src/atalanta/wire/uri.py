"""Addresses of brokers as text: `tcp://host:port?key=value;key=value`, and lists of them.

One strict parser serves acceptors, connectors, cluster-connection URIs and client URLs. The forms are Artemis':
`(tcp://a:1,tcp://b:2)?options`, `tcp://a:1,b:2?options`, `udp://group:port?options`. Parameters are separated by `;`
or `&` and percent-decoded as Artemis does (`+` is a blank).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, unquote_plus

from atalanta.message.encoding.digits import all_digits

LENGTH_MAX: Final = 64 * 1024  # characters of one address text
WORDS_MAX: Final = 400  # characters of a wrong text in an error
MEMBERS_MAX: Final = 1_000  # addresses of one list
DEFAULT_PORT: Final = 61616
HEX_DIGITS: Final = "0123456789abcdefABCDEF"
# Characters of a parameter's value that are written as they are, besides letters and digits.
SAFE: Final = "/:,@!*()[]|^$~{}?'"


# The value of a parameter with such a name. Nothing here looks at a character more than a few times: texts are long.
SECRET: Final = re.compile(r"(?i)((?:password|secret|token)[\w.-]{0,40}\s{0,4}=)[^;&)\s'\",]*")
BEFORE_USER: Final = " \t\n/'(,"


def masked(text: str) -> str:
    """Returns a text for people, without the passwords of the addresses in it, and without the user before an @."""
    parts = SECRET.sub(r"\1****", text).split("@")
    for index in range(len(parts) - 1):
        kept = max(parts[index].rfind(each) for each in BEFORE_USER) + 1
        parts[index] = f"{parts[index][:kept]}****"
    return "@".join(parts)


class UriError(ValueError):
    """An address text that is invalid. The message names the wrong part, without passwords; a long part is cut in the
    middle."""

    def __init__(self, text: str) -> None:
        text = masked(text)
        if len(text) > WORDS_MAX:
            text = f"{text[: WORDS_MAX // 2]}…{text[-WORDS_MAX // 2 :]}"
        super().__init__(text)


@dataclass
class Uri:
    """An address. `port` is None if the text has none; `params` keeps the order of the text."""

    scheme: str
    host: str
    port: int | None
    params: dict[str, str] = field(default_factory=dict)


@dataclass
class UriList:
    """The addresses of a list, at least one, and the options behind all of them."""

    members: list[Uri]
    params: dict[str, str] = field(default_factory=dict)


def parse_uri(text: str, schemes: tuple[str, ...], repeats: bool = False) -> Uri:
    """Parses one `scheme://host[:port][?params]`. UriError if the text is invalid or its scheme is not in `schemes`.

    `repeats`: of a parameter that is there twice the last one counts (`repeated_params` names it).
    """
    text = _limited(text)
    scheme, rest = _scheme(text, schemes)
    body, query = _split_query(rest)
    host, port = parse_authority(body)
    return Uri(scheme, host, port, parse_params(query, repeats))


def parse_uri_list(text: str, schemes: tuple[str, ...]) -> UriList:
    """Parses a single address or any of the list forms. Options of a single address count as the list's."""
    text = _limited(text)
    if text.startswith("("):
        return _parenthesised(text, schemes)
    scheme, rest = _scheme(text, schemes)
    body, query = _split_query(rest)
    params = parse_params(query)
    if body.startswith("("):
        return _with_params(_parenthesised(f"{body}", schemes, scheme), params)
    parts = _split_top(body)
    members: list[Uri] = []
    for i in range(len(parts)):
        part = parts[i].strip()
        if i > 0 and "://" in part:
            members.append(parse_uri(part, schemes))
            continue
        host, port = parse_authority(part)
        members.append(Uri(scheme, host, port, {}))
    return UriList(members, params)


def split_composite(text: str) -> tuple[list[str], str]:
    """Returns members and query of `(a,b)?query` or `//(a,b)?query`, as Classic writes them (URISupport).

    Members may have parentheses of their own. A text without parentheses is a single member with its query. UriError.
    """
    text = _limited(text).removeprefix("//")
    if not text.startswith("("):
        return [text], ""
    depth, start = 0, 1
    members: list[str] = []
    for at in range(len(text)):
        sign = text[at]
        depth += (sign == "(") - (sign == ")")
        if depth == 0 or (depth == 1 and sign == ","):
            members.append(text[start:at].strip())
            start = at + 1
            if len(members) > MEMBERS_MAX:
                raise UriError(f"more than {MEMBERS_MAX} addresses in one list")
        if depth == 0:
            if "" in members:
                raise UriError("an address in the list is empty")
            rest = text[at + 1 :]
            if rest and not rest.startswith("?"):
                raise UriError(f"unexpected '{rest}' after ')'")
            return members, rest[1:]
    raise UriError(f"'{text}' has no closing ')'")


def parse_authority(text: str) -> tuple[str, int | None]:
    """Parses `host`, `host:port`, `[ipv6]` or `[ipv6]:port`; one `/` at the end is allowed."""
    if text.endswith("/"):
        text = text[:-1]
    if not text:
        raise UriError("a host is missing")
    if "/" in text or "@" in text or "?" in text or "#" in text:
        raise UriError(f"'{text}' is not host:port")
    if text.startswith("["):
        end = text.find("]")
        if end < 0:
            raise UriError(f"'{text}' has no closing ']'")
        return text[1:end], _port(text[end + 1 :], text)
    colons = text.count(":")
    if colons > 1:
        raise UriError(f"'{text}': an IPv6 address is written in brackets")
    host, colon, port = text.partition(":")
    if not host or any(character.isspace() for character in host):
        raise UriError(f"'{text}' has no host")
    return host, _port(colon + port, text)


def parse_params(text: str, repeats: bool = False) -> dict[str, str]:
    """Parses `k=v;k=v` or `k=v&k=v`. A part without `=` is a key without value, as in Artemis. UriError for an empty
    key, and for a repeated one unless `repeats` lets the last one count.
    """
    params: dict[str, str] = {}
    for part in text.replace("&", ";").split(";"):
        if not part:
            continue
        key, _, value = part.partition("=")
        if not key.strip():
            raise UriError(f"'{part}' is not key=value")
        name = _decode(key.strip())
        if name in params and not repeats:
            raise UriError(f"parameter '{name}' is given twice")
        params[name] = _decode(value, name)
    return params


def repeated_params(text: str) -> list[str]:
    """Returns the parameters that are more than once behind the `?` of an address."""
    names = [part.partition("=")[0].strip() for part in text.partition("?")[2].replace("&", ";").split(";")]
    return [name for name in dict.fromkeys(names) if name and names.count(name) > 1]


def uri_text(host: str, port: int, params: dict[str, str]) -> str:
    """Formats `tcp://host:port?key=value;key=value`."""
    host = f"[{host}]" if ":" in host else host
    query = ";".join(f"{key}={quote(value, SAFE)}" for key, value in params.items())
    return f"tcp://{host}:{port}" + (f"?{query}" if query else "")


def _limited(text: str) -> str:
    text = text.strip()
    if len(text) > LENGTH_MAX:
        raise UriError(f"an address has more than {LENGTH_MAX} characters")
    return text


def _scheme(text: str, schemes: tuple[str, ...]) -> tuple[str, str]:
    scheme, separator, rest = text.partition("://")
    wanted = " or ".join(f"{name}://" for name in schemes)
    if not separator or not scheme:
        raise UriError(f"'{text}' does not begin with {wanted}")
    if scheme not in schemes:
        raise UriError(f"scheme '{scheme}' is not supported here: {wanted}")
    return scheme, rest


def _split_query(text: str) -> tuple[str, str]:
    """Returns the text before the first `?` outside parentheses, and that behind it."""
    depth = 0
    for i in range(len(text)):
        character = text[i]
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
        elif character == "?" and depth == 0:
            return text[:i], text[i + 1 :]
    return text, ""


def _split_top(text: str) -> list[str]:
    parts = text.split(",")
    if len(parts) > MEMBERS_MAX:
        raise UriError(f"more than {MEMBERS_MAX} addresses in one list")
    return parts


def _parenthesised(text: str, schemes: tuple[str, ...], default: str | None = None) -> UriList:
    """Parses `(uri,uri)?options`; members without a scheme get `default`."""
    end = text.find(")")
    if end < 0:
        raise UriError(f"'{text}' has no closing ')'")
    rest = text[end + 1 :]
    if rest and not rest.startswith("?"):
        raise UriError(f"unexpected '{rest}' after ')'")
    members: list[Uri] = []
    for part in _split_top(text[1:end]):
        part = part.strip()
        if not part:
            raise UriError("an address in the list is empty")
        if default is not None and "://" not in part:
            host, port = parse_authority(part)
            members.append(Uri(default, host, port, {}))
        else:
            members.append(parse_uri(part, schemes))
    return UriList(members, parse_params(rest[1:]))


def _with_params(found: UriList, params: dict[str, str]) -> UriList:
    for key, value in params.items():
        if key in found.params:
            raise UriError(f"parameter '{key}' is given twice")
        found.params[key] = value
    return found


def _port(text: str, whole: str) -> int | None:
    """Parses `:port` or an empty text."""
    if not text:
        return None
    digits = text[1:]
    if text[0] != ":" or not all_digits(digits, 5):
        raise UriError(f"'{whole}': '{digits}' is not a port")
    port = int(digits)
    if port > 65535:
        raise UriError(f"'{whole}': port {port} is above 65535")
    return port


def _decode(text: str, name: str = "") -> str:
    """Decodes a name, or the value of the parameter `name`, which may be a secret."""
    shown = name or f"'{text}'"
    at = text.find("%")
    while at >= 0:
        if len(text) < at + 3 or text[at + 1] not in HEX_DIGITS or text[at + 2] not in HEX_DIGITS:
            raise UriError(f"{shown}: a '%' is written %25")
        at = text.find("%", at + 3)
    try:
        return unquote_plus(text, errors="strict")
    except UnicodeDecodeError:
        raise UriError(f"{shown} is not UTF-8") from None
