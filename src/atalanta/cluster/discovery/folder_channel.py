"""FILE_PING: a shared folder with a file for each node of ours, and the files of real members, which are dialled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.discovery.tcp_channel import TcpChannel
from atalanta.wire.jgroups.member_list import LIST_SUFFIX, decode_member_list
from atalanta.wire.jgroups_discovery import FILE_SUFFIX, JgroupsStack, decode_posted, encode_posted
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.cluster.discovery.discovery import Discovery

# A file with a time further off is ignored until it changes: its node may be gone, or its clock wrong.
FRESH_MS: Final = 60_000
FILES_MAX: Final = 10_000
HOSTS_MAX: Final = 1_000
LISTS: Final = "lists"


class FolderChannel(TcpChannel):
    """The folder. No file names this node to members, so none dials it and it needs no port."""

    def __init__(self, discovery: Discovery, number: int, stack: JgroupsStack) -> None:
        super().__init__(discovery, number, stack)
        self.folder = f"{stack.folder.rstrip('/')}/{stack.channel}"
        self.file = discovery.node_id + FILE_SUFFIX
        self.seen: dict[str, bytes] = {}
        self.listed: list[tuple[str, int]] = []

    def open(self, now: int) -> None:
        self.opened()

    def hosts(self, now: int) -> list[tuple[str, int]]:
        return self.listed

    def tick(self, now: int) -> None:
        announcement = self.announcement()
        posted = b""
        if announcement:
            posted = encode_posted(self.stack.channel, now // 1_000_000, announcement)
        links = self.discovery.links
        links.post(self.key, self.folder, self.file, posted)
        if announcement and not self.stack.unmet:
            links.post(f"{self.key}.{LISTS}", self.folder, f"members{LIST_SUFFIX}", b"")  # which is only read
            super().tick(now)

    def close(self) -> None:
        if self.broadcast is not None:
            self.fall_silent()

    def fall_silent(self) -> None:
        self.discovery.links.unpost(self.folder, self.file)

    def on_posted(self, now: int, rest: str, files: dict[str, bytes], why: str) -> None:
        if rest == LISTS:
            if not why:
                self._list(now, files)
            return
        self.failed(why)
        if why:
            return
        for name in [name for name in self.seen if name not in files]:
            del self.seen[name]
        for name, data in files.items():
            before = self.seen.get(name)
            if not name.endswith(FILE_SUFFIX) or data == before:
                continue
            if before is None and len(self.seen) >= FILES_MAX:
                continue
            self.seen[name] = data
            try:
                posted = decode_posted(self.stack.channel, data)
            except ProtocolError:
                self.discovery.trace.count("discovery_files_unreadable")
                continue
            if posted is None:
                continue
            time_ms, announcement = posted
            if before is not None or abs(now // 1_000_000 - time_ms) <= FRESH_MS:
                self.on_announcement(now, announcement)

    def _list(self, now: int, files: dict[str, bytes]) -> None:
        found: dict[tuple[str, int], None] = {}
        for name, data in files.items():
            if name.endswith(LIST_SUFFIX):
                found.update(dict.fromkeys(decode_member_list(data)))
        self.listed = list(found)[:HOSTS_MAX]
        self.visit(now)
