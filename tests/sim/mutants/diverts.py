"""Diverts."""

from __future__ import annotations

from typing import Any

from atalanta.kernel.registry.addresses import AddressRegistry
from atalanta.kernel.routing.divert import Divert
from tests.sim.mutants.patching import Patch


def diverts_take_everything(patch: Patch) -> None:
    patch.setattr(Divert, "takes", lambda self, message: True)


def diverts_take_nothing(patch: Patch) -> None:
    patch.setattr(Divert, "takes", lambda self, message: False)


def diverts_make_no_name_routable(patch: Patch) -> None:
    patch.setattr(AddressRegistry, "routable", lambda self, name: self.by_name.get(name))


def exclusive_diverts_leave_a_copy(patch: Patch) -> None:
    init = Divert.__init__

    def shared(self: Divert, *args: Any, **named: Any) -> None:
        init(self, *args, **named)
        self.exclusive = False

    patch.setattr(Divert, "__init__", shared)
