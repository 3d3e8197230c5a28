"""Which addresses a cluster connection shares: its `address` as a list of prefixes.

Comma separated; `!` before a prefix excludes, and exclusion wins; without a prefix that includes, all are included.
There are no wildcards (ClusterConnectionBridge.buildSelectorFromArray of Artemis).
"""

from __future__ import annotations


class Covered:
    """`included` and `excluded` are prefixes as written, without `!`."""

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
        """A prefix of addresses that both cover, "" when that is all of them; None if there is none."""
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
    """Of (name, address list): pairs of names that share addresses, and the prefix of what they share."""
    found: list[tuple[str, str, str]] = []
    for at, (name, text) in enumerate(texts):
        for earlier, earlier_text in texts[:at]:
            common = Covered(earlier_text).overlap(Covered(text))
            if common is not None:
                found.append((earlier, name, common))
    return found


def shown(prefix: str) -> str:
    """For a message to a person."""
    return f"addresses that begin with '{prefix}'" if prefix else "all addresses"
