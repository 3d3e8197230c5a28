"""The reception of one batch at one node: from the queue, in an XA branch, into a write-ahead file.

The steps, and what a crash before the next one leaves:

1. The messages are received and written to a draft: they return to the queue.
2. The branch is prepared: the next start rolls it back, since no file names it.
3. The file is published: the next start commits the branch.
4. The branch is committed.
"""

from __future__ import annotations

import logging
import secrets
import threading
from dataclasses import dataclass

from atalanta.client import ClientError
from atalanta.client.log import entry_bytes
from atalanta.spark.errors import GatewayError, NodeUnavailable, SparkSourceError
from atalanta.spark.options import ReadOptions
from atalanta.spark.read.batch_room import BatchRoom
from atalanta.spark.read.offsets import now_ms
from atalanta.spark.wal.body_limit import body_error
from atalanta.spark.wal.wal_file import (
    MESSAGES_MAX,
    FileDamaged,
    WalFileReader,
    WalFileWriter,
)
from atalanta.spark.wal.wal_folder import WalFolder, WalName
from atalanta.spark.wal.wal_node import WalNode

log = logging.getLogger("atalanta.spark")


@dataclass(frozen=True)
class FileLimits:
    """The limits of one file: of a queue at a node. The last message may exceed `bytes`, if the batch has room."""

    messages: int
    bytes: int


class Receiver:
    """The receptions of a driver. Calls for different nodes may run in threads."""

    def __init__(self, options: ReadOptions, folder: WalFolder) -> None:
        self.options = options
        self.folder = folder
        self.lock = threading.Lock()
        self.uncommitted: dict[str, str] = {}  # branch with a file -> node id

    def settle(self, node: WalNode) -> None:
        """Ends the prepared branches that this or an earlier driver has left at the node, or that moved to it.

        Raises Fenced, NodeUnavailable, SparkSourceError for a damaged file, and GatewayError for a branch that an
        operator has ended in the other way.
        """
        folder = self.folder
        left = node.prepared(folder.id)
        if left:
            folder.check()
        filed = folder.branches()
        for branch in left:
            name = filed.get(branch)
            if name is not None:
                self._check_file(node, name)
                log.warning(
                    "node %s: committing branch %s, whose file is complete", node.node_id, branch
                )
                self._commit(node, branch)
            else:
                log.warning("node %s: rolling back branch %s without a file", node.node_id, branch)
                node.roll_back(folder.id, branch)

    def _commit(self, node: WalNode, branch: str) -> None:
        """Commits a branch with a file. One that the node does not have stays in `uncommitted`."""
        if node.commit(self.folder.id, branch):
            with self.lock:
                self.uncommitted.pop(branch, None)

    def _check_file(self, node: WalNode, name: WalName) -> None:
        """Raises SparkSourceError if a file is damaged whose messages are still in their prepared branch."""
        try:
            for _ in WalFileReader(self.folder.location, str(name), self.folder.id).chunks():
                pass
        except FileDamaged as error:
            raise SparkSourceError(
                f"{error.what}. Nothing is lost: its messages are still at node {node.node_id} ({node.server}), in the "
                f"prepared branch {name.branch}. Restore the file from a backup; or remove it and start again (if "
                "walLocation has later files, once with failOnDataLoss=false): then they return to the queue"
            ) from error

    def receive(self, node: WalNode, queue: str, share: FileLimits, room: BatchRoom) -> int | None:
        """Receives a file from a queue of the node and returns its number of messages, 0 if the queue has none now.

        None if the batch has no `room` for the first one. After NodeUnavailable the file may be there, with its branch
        in `uncommitted`. Any other error ends the query.
        """
        self.settle(node)
        try:
            count = self._received(node, queue, share, room)
        except BaseException as error:
            self._end(node, error)
            raise
        self._end(node, None)
        return count

    def _received(self, node: WalNode, queue: str, share: FileLimits, room: BatchRoom) -> int | None:
        token = secrets.token_hex(8)
        branch = f"{self.folder.epoch}/{token}"
        node.begin(self.folder.id, branch, queue, self.options.selector)
        writer, left = self._fill(node, queue, token, share, room)
        if writer is None:
            return None if left else 0
        try:
            writer.close()
            node.prepare()
        except SparkSourceError:
            self.folder.discard(token)
            raise
        with self.lock:
            self.uncommitted[branch] = node.node_id
        self.folder.publish(writer.draft, token)
        self._commit(node, branch)
        return writer.count

    def _fill(
        self, node: WalNode, queue: str, token: str, share: FileLimits, room: BatchRoom
    ) -> tuple[WalFileWriter | None, bool]:
        """Receives messages into a draft, up to the limits.

        Returns None without any message, and whether one was left for which the batch has no room.
        """
        writer: WalFileWriter | None = None
        received_at_ms = now_ms()
        most = min(share.messages, MESSAGES_MAX)
        try:
            while writer is None or (writer.count < most and writer.bytes < share.bytes):
                message = node.receive()
                if message is None:
                    break
                try:
                    why = body_error(message, self.options, queue, node.node_id, received_at_ms)
                    if not room.take(entry_bytes(message, 0 if why else len(message.body))):
                        node.leave()
                        return writer, True
                    if writer is None:
                        draft = self.folder.draft(token)
                        writer = WalFileWriter(draft, self.folder.id, node, queue, received_at_ms)
                    writer.add(message, why)
                except ClientError as error:
                    raise SparkSourceError(
                        f"message {message.message_id} of queue {queue} at node {node.node_id} "
                        f"cannot be received: {error}. It stays in the queue: move it away, and start again"
                    ) from error
        except SparkSourceError:
            if writer is not None:
                writer.draft.close()
                self.folder.discard(token)
            raise
        return writer, False

    @staticmethod
    def _end(node: WalNode, error: BaseException | None) -> None:
        """Ends the node's branch. `error` is what ended the reception: it stays the one to see."""
        try:
            node.end()
        except NodeUnavailable as gone:  # the branch ends with the connection
            log.warning("node %s: %s", node.node_id, gone)
        except GatewayError as failed:
            if error is None:
                raise
            error.add_note(f"the end of the branch failed, too: {failed}")
