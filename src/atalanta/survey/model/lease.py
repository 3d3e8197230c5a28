"""The lease of a queue as an Atalanta node reports it to operators' commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from atalanta.survey.node.answers import Row, has
from atalanta.survey.texts import duration_text

RENEWAL_MAX_MS: Final = 30_000  # a query renews its leases so often, or three times in its leaseTimeout
FIELDS: Final[dict[str, type]] = {
    "group": str, "owner": str, "epoch": int, "active": bool, "ageMs": int, "sinceRenewalMs": int, "endsInMs": int,
    "timeoutMs": int, "refusals": int, "sinceRefusalMs": int, "unacknowledgedMax": int,
}  # fmt: skip


@dataclass(frozen=True)
class LeaseView:
    """A lease as a node reports it. Times in ms: how long ago, `ends_in_ms` how long still; -1: never."""

    group: str
    owner: str
    epoch: int
    age_ms: int
    since_renewal_ms: int
    ends_in_ms: int
    timeout_ms: int
    refusals: int
    since_refusal_ms: int
    unacknowledged_max: int

    @property
    def silent(self) -> bool:
        """Returns whether its owner has left out a renewal: it has ended, hangs, or cannot reach the node."""
        return self.since_renewal_ms > 2 * min(RENEWAL_MAX_MS, self.timeout_ms // 3)

    def text(self) -> str:
        """Returns who has the lease, since when and for how long."""
        renewed = f"renewed {duration_text(self.since_renewal_ms)} ago"
        if self.silent:
            renewed = f"not renewed for {duration_text(self.since_renewal_ms)}: its owner has ended or is cut off"
        return (
            f"group {self.group} of {self.owner} (epoch {self.epoch}) for {duration_text(self.age_ms)}, {renewed}; "
            f"without a renewal it ends in {duration_text(self.ends_in_ms)}"
        )


def lease_of(row: dict[str, object]) -> LeaseView | None:
    """Returns the active lease of a typed row of `listQueues`; None without one, or of a broker that has none."""
    found = row.get("lease")
    return view_of(found) if isinstance(found, dict) and has(found, FIELDS) else None


def view_of(row: Row) -> LeaseView:
    """Returns the view of a lease that has all FIELDS."""
    return LeaseView(
        row["group"], row["owner"], row["epoch"], row["ageMs"], row["sinceRenewalMs"], row["endsInMs"],
        row["timeoutMs"], row["refusals"], row["sinceRefusalMs"], row["unacknowledgedMax"],
    )  # fmt: skip
