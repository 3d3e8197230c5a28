"""The command that a node processes, and the seam where it begins to change the kernel.

An unexpected exception before the seam costs the connection whose command it was: nothing has changed. Behind the seam
the state of the kernel cannot be trusted, and the node ends. Errors that are expected, BrokerError and those of the
protocol, are raised before the seam, too.

What calls `begin_change`: the entry points of the kernel for clients (`kernel/sessions`, `kernel/transactions`,
`kernel/log`), the registries, the publisher, and whoever changes shared state by its own hands.
tests/node/test_planted_exceptions.py raises an exception at every place that a command passes and holds them to it.
"""

from __future__ import annotations

from mypy_extensions import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class CurrentCommand:
    """The command that the node processes now; one input of a connection may have many.

    `changing`: it has begun to change the kernel.
    """

    def __init__(self) -> None:
        self.changing: bool = False

    def begin(self) -> None:
        """Begins the next command, which has changed nothing yet. It is to be decoded and checked."""
        self.changing = False

    def enter(self) -> bool:
        """Begins a command that has waited, within another input. Returns what `leave` is to be given.

        The caller begins it by `begin`.
        """
        before = self.changing
        self.changing = False
        return before

    def leave(self, before: bool) -> None:
        """Ends the command that has waited: the other input goes on."""
        self.changing = before

    def begin_change(self) -> None:
        """Records that the command changes the kernel from here on: everything is checked."""
        self.changing = True

    def end(self) -> None:
        """Ends the command. What follows, as the end of its connection, changes the kernel."""
        self.changing = True
