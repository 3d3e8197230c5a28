"""Members of a cluster, and the rules that accept or ignore their updates.

The rules are those of Artemis' client Topology:

- An update is taken if the node is unknown, if its event id is greater than the known one, or if it brings the
  first primary connector.
- A removal is ignored if a newer event is known. A removal is remembered, so that older announcements do not add
  the node again.
"""

from __future__ import annotations

from typing import Final

from atalanta.wire.core.transport import TransportConfiguration

MEMBERS_MAX: Final = 10_000
REMOVED_MAX: Final = 10_000


class Member:
    """A node of the cluster. `primary` is its connector, `backup` that of its backup; event ids are in ms."""

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
    """The known members, in the order in which they were added. `removed` has the event ids of removals."""

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.removed: dict[str, int] = {}

    def update(self, news: Member) -> Member | None:
        """Returns the merged member if the update was taken, else None."""
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
        """Removes a member. Returns True if it was known."""
        known = self.members.get(node_id)
        if known is not None and known.event_id > event_id:
            return False
        if len(self.removed) >= REMOVED_MAX:
            del self.removed[next(iter(self.removed))]
        self.removed[node_id] = event_id
        return self.members.pop(node_id, None) is not None
