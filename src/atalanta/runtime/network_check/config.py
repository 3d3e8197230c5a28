"""The options of the network check in broker.xml (network-check-*).

Source: Artemis' NetworkHealthCheck and the options that FileConfigurationParser reads for it.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Final

from atalanta.kernel.option import OptionGroup, option

# With timeout and address, as Artemis fills them in.
PING: Final = "ping -c 1 -t %d %s" if sys.platform == "darwin" else "ping -c 1 -w %d %s"
PING6: Final = "ping6 -c 1 %2$s"
TIMEOUT: Final = 1
ADDRESS: Final = 2
PIECE: Final = re.compile(r"%%|%(?:([1-9])\$)?([ds])|[^%]+|%")


class BadCommand(ValueError):
    """A ping command with an invalid placeholder."""


@dataclass(eq=False, repr=False)
class NetworkCheckConfig(OptionGroup):
    """The options of the network check. Lists are unparsed. `network-check-period` has the default of Artemis'
    code; its schema says 10000."""

    addresses: str = option(
        "",
        "network-check-list",
        "addresses and host names, separated by commas: the node serves as long as one of them, or one of the URLs, "
        "answers (docs/guide/network-check.md); none of both: nothing is checked. Loopback addresses are left out",
    )
    urls: str = option(
        "",
        "network-check-URL-list",
        "URLs, separated by commas, http or https: one answers when a GET of it does, with a status below 400",
    )
    period_ms: int = option(
        5_000, "network-check-period", "from the end of one check to the next", unit="ms", minimum=1
    )
    timeout_ms: int = option(
        1_000,
        "network-check-timeout",
        "how long one of them may take; the ping command is told it in whole seconds, at least one",
        unit="ms",
        minimum=1,
        maximum=(1 << 31) - 1,
    )
    interface: str = option(
        "",
        "network-check-NIC",
        "the network interface that pings leave by (`ping -I`); not with a ping command of your own, nor for URLs",
    )
    ping_command: str = option(
        PING,
        "network-check-ping-command",
        "what is run for an IPv4 address; status 0: it answers. Placeholders as in Java's String.format: the first "
        "is the timeout in seconds, the second the address (`%d %s`, `%2$s`, `%%`). No shell: spaces alone separate "
        "the words. As long as both commands are the default, a connection to port 7 that is refused is an answer, too",
    )
    ping6_command: str = option(
        PING6, "network-check-ping6-command", "the same for an IPv6 address"
    )

    def custom(self) -> bool:
        """Returns whether a command is not the default: then only the commands decide."""
        return self.ping_command not in ("", PING) or self.ping6_command not in ("", PING6)


class PingCommand:
    """A parsed command: words of parts, each a text, TIMEOUT or ADDRESS."""

    def __init__(self, text: str) -> None:
        self.words: list[list[str | int]] = []
        self._ordinary = 0
        for word in text.split():
            self.words.append([self._piece(found) for found in PIECE.finditer(word)])
        if not self.words:
            raise BadCommand("there is no command")

    def _piece(self, found: re.Match[str]) -> str | int:
        text = found.group()
        if text == "%%":
            return "%"
        kind = found.group(2)
        if kind is None:
            if text == "%":
                raise BadCommand(f"'{found.string[:60]}': %d, %s, %1$d, %2$s and %% are understood")
            return text
        if found.group(1) is None:
            self._ordinary += 1
        index = int(found.group(1) or self._ordinary)
        if index > ADDRESS:
            raise BadCommand(f"'{found.string[:60]}': there are two values, the timeout and the address")
        if index == ADDRESS and kind == "d":
            raise BadCommand(f"'{found.string[:60]}': the second value, the address, is not a number: %s")
        return index

    @property
    def takes_address(self) -> bool:
        """Returns whether the command uses the address; otherwise its result is equal for all addresses."""
        return any(ADDRESS in word for word in self.words)

    def arguments(self, timeout_s: int, address: str, interface: str = "") -> list[str]:
        """Returns the words to execute; a value never becomes two words."""
        values = {TIMEOUT: str(timeout_s), ADDRESS: address}
        filled = [
            "".join(values[piece] if isinstance(piece, int) else piece for piece in word)
            for word in self.words
        ]
        return [filled[0], "-I", interface, *filled[1:]] if interface else filled


def listed(text: str) -> list[str]:
    """Returns the entries of a list, without duplicates."""
    return list(dict.fromkeys(entry.strip() for entry in text.split(",") if entry.strip()))
