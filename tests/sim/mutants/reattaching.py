"""Clients that go on with their sessions."""

from __future__ import annotations

from atalanta.wire.core.packets.session import ReattachSessionResponse
from atalanta.wire.core.server.reattach import SESSION_RESPONSE_CHANNEL, Reattached
from atalanta.wire.core.server.resend_buffer import Replay
from tests.sim.mutants.patching import Patch


def reattached_client_misses_frames(patch: Patch) -> None:
    patch.setattr(Replay, "unconfirmed", lambda self: b"")


def reattached_client_repeats_itself(patch: Patch) -> None:
    """The client is told that nothing of what it sent has come."""
    patch.setattr(Reattached, "done", lambda self, token: _answer_too_little(self))


def _answer_too_little(reattached: Reattached) -> None:
    reattached.connection.send(ReattachSessionResponse(-1, True), SESSION_RESPONSE_CHANNEL)
