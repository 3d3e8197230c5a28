"""Members of a cluster, and the rules that accept or ignore their updates.

The rules are those of Artemis' client Topology:

- An update is taken if the node is unknown, if its event id is greater than the known one, or if it brings the
  first primary connector.
- A half that an update leaves out is kept. A backup that has become the primary is not the backup any longer.
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

    def connectors(self) -> list[TransportConfiguration]:
        """Returns the connectors of the node and of its backup, as far as they are known."""
        return [each for each in (self.primary, self.backup) if each is not None]

    def followed_by(self, news: Member) -> bool:
        """Returns whether the two halves of one pair have changed places: `news` is this node after a failover."""
        before, after = self.primary, news.primary
        if before is None or after is None or before.same_target(after):
            return False
        was_backup = self.backup is not None and self.backup.same_target(after)
        return was_backup or (news.backup is not None and news.backup.same_target(before))


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
        primary = news.primary if news.primary is not None else known.primary
        backup = news.backup if news.backup is not None else known.backup
        if primary is not None and backup is not None and backup.same_target(primary):
            backup = None
        merged = Member(
            news.node_id,
            max(news.event_id, known.event_id),
            primary,
            backup,
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
