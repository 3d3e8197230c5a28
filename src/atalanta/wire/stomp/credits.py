"""The credits of a subscription's consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.endpoint import SILENT
from atalanta.wire.stomp.subscription import UNLIMITED

if TYPE_CHECKING:
    from atalanta.wire.stomp.session import StompSession
    from atalanta.wire.stomp.subscription import Part

# Of a browser without a limit: `drained` takes what is left, so that nothing follows its end.
ALL: Final = 1 << 40


def begin_credits(session: StompSession, part: Part) -> None:
    """Gives the consumer of a new part its first credits."""
    size = part.window.size
    session.kernel.add_credits(part.number, ALL if size == UNLIMITED and part.subscription.browser else size)


def give_credits(session: StompSession, part: Part, message_id: int, cumulative: bool) -> None:
    """Gives the credits of a message that is no more with the client; `cumulative`: and of those before it."""
    credits = part.window.give_back(message_id, cumulative)
    if part.subscription.ordered:
        part.subscription.forget(part.number, message_id)
    if credits <= 0 or part.number not in session.parts or part.window.size == UNLIMITED or part.browsed:
        return
    kernel = session.kernel
    kernel.add_credits(part.number, credits)
    if part.drains:
        part.drain_again(False)
        kernel.drain(kernel.services.store.now, part.number, SILENT)
