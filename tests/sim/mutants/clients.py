"""The engine of the Python client."""

from __future__ import annotations

from atalanta.wire.core.client.answer_order import NO_CORRELATION
from atalanta.wire.core.client.reply import Reply
from atalanta.wire.core.client.request import Request, RequestTable
from tests.sim.mutants.patching import Patch


def commit_overtakes_acknowledgements(patch: Patch) -> None:
    """A commit does not wait for the answers to earlier requests."""
    add = RequestTable.add

    def hasty(self: RequestTable, now: int, request: Request) -> Reply:
        request.ordered = request.correlation == NO_CORRELATION
        return add(self, now, request)

    patch.setattr(RequestTable, "add", hasty)
