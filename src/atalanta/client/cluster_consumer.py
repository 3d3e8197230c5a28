"""Consumer of one queue at all members of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.client.consumer import CUMULATIVE, Consumer
from atalanta.client.shells.asyncio_shell import AsyncioShell
from atalanta.client.shells.member_connections import CLOSE_S, MemberConnections
from atalanta.wire.core.client.consumer import Delivery
from atalanta.wire.core.client.member_consumers import MILLISECOND_NS, MemberConsumers

if TYPE_CHECKING:
    from collections.abc import Callable

    from atalanta.client.shells.shell import ClientShell
    from atalanta.wire.core.client.large_message import BodySink
    from atalanta.wire.core.client.settings import SessionSettings


class ClusterConsumer(Consumer):
    """Receives the messages of `queue` at each active member that has it; made by `consumer(…, members="all")`.

    Members that come, go, take over or scale down are followed, as long as the connection is there. The messages of
    each member are in order. One that was acknowledged with an answer does not come again; one that was not comes
    again, at its member or where a takeover, a scale-down or redistribution brought it. The window is one budget over
    all members. With ack="cumulative" an acknowledgement counts, at each member, for what came from it before.
    """

    def __init__(self, shell: ClientShell, consumers: MemberConsumers, links: MemberConnections, ack: str) -> None:
        super().__init__(shell, consumers, ack)
        self._consumers = consumers
        self._links = links

    @property
    def members(self) -> tuple[str, ...]:
        """Returns the node ids of the members at which it consumes now, sorted."""
        return tuple(sorted(each.node_id for each in self._consumers.members.values() if each.open))

    def _settles(self, delivery: Delivery) -> bool:
        return self._consumers.settles(delivery)

    def _server(self, delivery: Delivery) -> object:
        return self._consumers.node_id_of(delivery) or self._shell.server

    @property
    def closed(self) -> bool:
        """Returns whether `close` was called."""
        return self._consumers.closed

    async def _end(self) -> None:
        # Whatever a member answers, or does not: the end of its connection returns the messages, too.
        await self._shell.wait(self._consumers.close(), CLOSE_S)

    async def close(self) -> None:
        """Closes the consumer and its connections. Messages without acknowledgement return to their queues."""
        try:
            await super().close()
        finally:
            await self._links.close()


async def open_cluster_consumer(
    shell: ClientShell,
    settings: Callable[[], SessionSettings],
    sinks: Callable[[], BodySink] | None,
    queue: str,
    selector: str | None,
    browse: bool,
    ack: str,
    priority: int,
    window: int,
) -> ClusterConsumer:
    """Returns the consumer when each member has been asked that can be reached.

    QueueDoesNotExist: none of them has the queue. IllegalState: a temporary queue, or a subscription.
    """
    assert isinstance(shell, AsyncioShell)
    links = MemberConnections(shell, settings)
    options = shell.options
    consumers = MemberConsumers(
        links, queue, selector, browse, priority, window, ack == CUMULATIVE, options.pre_acknowledge, sinks
    )
    links.begin(consumers)
    links.later(options.call_timeout_ms * MILLISECOND_NS, consumers.open_by_now)
    try:
        await shell.answer(consumers.opened)
    except BaseException:
        consumers.close()
        await links.close()
        raise
    return ClusterConsumer(shell, consumers, links, ack)
