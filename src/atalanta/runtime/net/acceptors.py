"""The acceptors of a shell: bound before the node recovers, then opened, closed and changed while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from atalanta.runtime.net.acceptor import Acceptor, Listen, PortTaken
from atalanta.runtime.net.tcp import Connections
from atalanta.runtime.trace import LogTrace

LAST = (
    "the acceptor '{name}' is the last one for CORE that is open: clients, members and commands come in there. Open"
    " another one for CORE first"
)


class AcceptorRefused(Exception):
    """An acceptor that cannot be opened or closed; the text names it, with the reason."""


class Acceptors:
    """`listens` are all of the configuration by name, `open` those that are bound. Once `closed`, none opens again."""

    def __init__(self, connections: Connections, trace: LogTrace) -> None:
        self._connections = connections
        self._trace = trace
        self._tasks: set[asyncio.Task[None]] = set()
        self.listens: dict[str, Listen] = {}
        self.open: dict[str, Acceptor] = {}
        self.closed = False

    # -- start and stop of the node ---------------------------------------------------------------
    def bind(self, listens: Sequence[Listen]) -> None:
        """Binds the ports; OSError names one that cannot be bound, and then none is kept."""
        self.listens = {listen.name: listen for listen in listens}
        try:
            for listen in listens:
                if listen.auto_start:
                    self._bind(listen)
        except OSError:
            self._close(list(self.open))
            raise

    def _bind(self, listen: Listen) -> Acceptor:
        acceptor = Acceptor(listen, self._connections, self._trace)
        acceptor.bind()
        self.open[listen.name] = acceptor
        return acceptor

    def listen_early(self) -> None:
        """Lets clients connect and wait until `accept`."""
        for acceptor in self.open.values():
            acceptor.listen_early()

    async def accept(self) -> None:
        """Starts to accept. Raises PortTaken."""
        for name, acceptor in list(self.open.items()):
            if self.open.get(name) is acceptor:
                await acceptor.accept()

    def addresses(self) -> list[str]:
        """Returns "acceptor=host:port" of every bound address."""
        return [f"{name}={address}" for name, acceptor in self.open.items() for address in acceptor.addresses]

    def close_all(self) -> None:
        """Closes all acceptors for good."""
        self.closed = True
        self._close(list(self.open))

    def _close(self, names: list[str]) -> None:
        for name in names:
            self.open.pop(name).close()

    # -- while the node runs ------------------------------------------------------------------------
    def start(self, name: str) -> None:
        """Opens an acceptor. AcceptorRefused names the reason."""
        if name in self.open:
            return
        if self.closed:
            raise AcceptorRefused(f"the acceptor '{name}' does not open: the node accepts nobody any more")
        try:
            acceptor = self._bind(self.listens[name])
        except OSError as error:
            raise AcceptorRefused(f"acceptor '{name}': {error.strerror or error}") from error
        self._serve([acceptor])

    def stop(self, name: str) -> None:
        """Closes an acceptor; open connections stay. AcceptorRefused if it is the last one for CORE."""
        if name in self.open:
            self._check_last([name], [])
            self._close([name])
            self._trace.event("acceptor_stopped", {"acceptor": name})

    def _check_last(self, closing: list[str], opening: list[Listen]) -> None:
        """Raises AcceptorRefused if no acceptor for CORE were left of those that are open."""
        serving = [name for name, acceptor in self.open.items() if acceptor.listen.core]
        left = [name for name in serving if name not in closing]
        if serving and not left and not any(listen.core for listen in opening):
            raise AcceptorRefused(LAST.format(name=serving[0]))

    def change(self, listens: Sequence[Listen]) -> None:
        """Opens, changes and closes acceptors as a reload wants it. AcceptorRefused: nothing has changed.

        An acceptor that was stopped stays so. One with another address is bound anew, and open connections stay.
        """
        if self.closed:
            return
        wanted = {listen.name: listen for listen in listens}
        before = self.open
        adding = [each for each in listens if each.auto_start and each.name not in self.listens]
        moving = [
            listen for name, listen in wanted.items()
            if name in before and not listen.same_address(before[name].listen)
        ]  # fmt: skip
        ending = [name for name in before if name not in wanted]
        lacking = [name for name in before if name in wanted and not wanted[name].core]
        self._check_last([*ending, *lacking], adding)
        opened = self._replace([*ending, *(each.name for each in moving)], [*moving, *adding])
        for name, acceptor in self.open.items():
            acceptor.adapt(wanted[name])
        self.listens = wanted
        for name in ending:
            self._trace.event("acceptor_stopped", {"acceptor": name})
        self._serve(opened)

    def _replace(self, ending: list[str], opening: list[Listen]) -> list[Acceptor]:
        """Closes some acceptors and binds others, which may have their ports. AcceptorRefused: all is as before."""
        former = [self.open[name].listen for name in ending]
        self._close(ending)
        opened: list[Acceptor] = []
        try:
            for listen in opening:
                acceptor = self._bind(listen)
                opened.append(acceptor)
                acceptor.listen_early()
        except OSError as error:
            self._close([acceptor.listen.name for acceptor in opened])
            self._close([listen.name for listen in opening if listen.name in self.open])
            self._serve([self._bind(listen) for listen in former])
            raise AcceptorRefused(f"acceptor '{listen.name}': {error.strerror or error}") from error
        return opened

    def _serve(self, acceptors: list[Acceptor]) -> None:
        """Begins to accept. Clients may connect at once, as the port listens."""
        for acceptor in acceptors:
            acceptor.listen_early()
            task = self._connections.loop.create_task(self._accept(acceptor))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _accept(self, acceptor: Acceptor) -> None:
        name = acceptor.listen.name
        if self.open.get(name) is not acceptor:
            return
        try:
            await acceptor.accept()
        except PortTaken as error:
            self._close([name])
            self._trace.event("acceptor_failed", {"acceptor": name, "why": error.strerror or str(error)})
        else:
            at = " ".join(acceptor.addresses)
            self._trace.event("acceptor_started", {"acceptor": name, "at": at})
