"""Large messages."""

from __future__ import annotations

from atalanta.kernel.memory.large_body import LargeBodies
from tests.sim.mutants.patching import Patch


def files_of_large_messages_stay(patch: Patch) -> None:
    patch.setattr(LargeBodies, "_delete", lambda self, body: None)


def pieces_of_large_messages_change(patch: Patch) -> None:
    on_read = LargeBodies.on_read

    def careless(self: LargeBodies, now: int, token: int, data: bytes) -> None:
        on_read(self, now, token, b"?" + data[1:])

    patch.setattr(LargeBodies, "on_read", careless)
