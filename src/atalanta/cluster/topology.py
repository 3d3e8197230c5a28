"""Who is a member, and which news of them to believe.

Rules of Artemis' client Topology (fact sheet A1.b, "Topology rules"): an update is taken if the node is unknown, if its
event id is greater than the one known, or if it brings a primary connector where none was known; a removal is ignored
if a newer event is known, and is remembered so that older announcements cannot bring the node back.
"""

from __future__ import annotations

from typing import Final

from atalanta.wire.core.transport import TransportConfiguration

MEMBERS_MAX: Final = 10_000
REMOVED_MAX: Final = 10_000


class Member:
    """One node: `primary` is how to reach it, `backup` its stand-in; event ids are milliseconds."""

    def __init__(
        self,
        node_id: str,
        event_id: int,
        primary: TransportConfiguration | None,
        backup: TransportConfiguration | None,
        backup_group: str | None,
        scale_down_group: str | None,
    ) -> None:
        self.node_id = node_id
        self.event_id = event_id
        self.primary = primary
        self.backup = backup
        self.backup_group = backup_group
        self.scale_down_group = scale_down_group


class Topology:
    """`members` in order of arrival."""

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.removed: dict[str, int] = {}

    def update(self, news: Member) -> Member | None:
        """The merged member if the news were taken, else None."""
        gone = self.removed.get(news.node_id)
        if gone is not None and news.event_id <= gone:
            return None
        known = self.members.get(news.node_id)
        if known is None:
            if len(self.members) >= MEMBERS_MAX:
                return None
            self.members[news.node_id] = news
            self.removed.pop(news.node_id, None)
            return news
        newer = news.event_id > known.event_id
        brings_primary = known.primary is None and news.primary is not None
        if not newer and not brings_primary:
            return None
        merged = Member(
            news.node_id,
            max(news.event_id, known.event_id),
            news.primary if news.primary is not None else known.primary,
            news.backup if news.backup is not None else known.backup,
            news.backup_group if news.backup_group is not None else known.backup_group,
            news.scale_down_group if news.scale_down_group is not None else known.scale_down_group,
        )
        self.members[news.node_id] = merged
        return merged

    def remove(self, node_id: str, event_id: int) -> bool:
        """True if the member was there and is gone now."""
        known = self.members.get(node_id)
        if known is not None and known.event_id > event_id:
            return False
        if len(self.removed) >= REMOVED_MAX:
            del self.removed[next(iter(self.removed))]
        self.removed[node_id] = event_id
        return self.members.pop(node_id, None) is not None
