"""Awaitables that usually complete without waiting, without a coroutine or a future per message."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Final, Protocol

from atalanta.wire.core.client.reply import Reply

if TYPE_CHECKING:
    from atalanta.client.shells.shell import ClientShell
    from atalanta.wire.core.client.consumer import Delivery


class Acknowledgement:
    """An operation that completes whether it is awaited or not."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, None]:
        return _nothing()


def _nothing() -> Generator[Any, None, None]:
    return
    yield  # makes this a generator


READY: Final = Acknowledgement()


class Settler(Protocol):
    """Acknowledges the deliveries of a consumer, or gives them back."""

    def acknowledge(self, delivery: Delivery) -> Acknowledgement: ...

    def settle(self, delivery: Delivery, reject: bool, delay_ms: int) -> Acknowledgement: ...


class AwaitedReply(Acknowledgement):
    """An awaitable for the reply that `ask` returns at the time of the await."""

    __slots__ = ("_ask", "_shell")

    def __init__(self, shell: ClientShell, ask: Callable[[], Reply]) -> None:
        self._shell = shell
        self._ask = ask

    def __await__(self) -> Generator[Any, None, None]:
        return self._wait().__await__()

    async def _wait(self) -> None:
        await self._shell.answer(self._ask())
