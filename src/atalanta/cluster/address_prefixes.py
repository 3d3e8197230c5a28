"""The `address` of a cluster connection: a list of prefixes that selects the addresses it shares.

The prefixes are separated by commas. `!` before a prefix excludes its addresses, and exclusion wins. Without an
including prefix all addresses are included. There are no wildcards (ClusterConnectionBridge.buildSelectorFromArray
of Artemis).
"""

from __future__ import annotations


class Covered:
    """The prefixes of a cluster connection. `included` and `excluded` are as written, without `!`."""

    def __init__(self, text: str) -> None:
        self.included: list[str] = []
        self.excluded: list[str] = []
        for part in text.split(","):
            prefix = part.strip()
            if prefix.startswith("!"):
                self.excluded.append(prefix[1:])
            elif prefix:
                self.included.append(prefix)

    def covers(self, address: str) -> bool:
        if any(address.startswith(prefix) for prefix in self.excluded):
            return False
        return not self.included or any(address.startswith(prefix) for prefix in self.included)

    def overlap(self, other: Covered) -> str | None:
        """Returns a prefix of addresses that both lists cover: "" for all addresses, None if there is none."""
        for mine in self.included or [""]:
            for theirs in other.included or [""]:
                if mine.startswith(theirs):
                    common = mine
                elif theirs.startswith(mine):
                    common = theirs
                else:
                    continue
                out = [*self.excluded, *other.excluded]
                if not any(common.startswith(prefix) for prefix in out):
                    return common
        return None



def overlaps(texts: list[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """Returns (earlier name, later name, common prefix) of each overlap. `texts` has names and prefix lists."""
    found: list[tuple[str, str, str]] = []
    for at, (name, text) in enumerate(texts):
        for earlier, earlier_text in texts[:at]:
            common = Covered(earlier_text).overlap(Covered(text))
            if common is not None:
                found.append((earlier, name, common))
    return found


def shown(prefix: str) -> str:
    """Returns the prefix as text for a log or error message."""
    return f"addresses that begin with '{prefix}'" if prefix else "all addresses"
