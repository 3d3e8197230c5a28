"""Full disks."""

from __future__ import annotations

from atalanta.kernel.memory.memory import Memory
from tests.sim.mutants.patching import Patch


def reserve_is_used_for_messages(patch: Patch) -> None:
    patch.setattr(Memory, "exhaustion", lambda self: None)
