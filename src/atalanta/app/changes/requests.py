"""The requests of management about the configuration of one run of a node. Most nodes never get one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from atalanta.app.storage import Storage
from atalanta.config.configuration import Configuration
from atalanta.kernel.settings.configuration_request import ConfigurationAnswer, ConfigurationRequest

if TYPE_CHECKING:
    from atalanta.app.changes.attempt import ConfigurationChangeAttempt
    from atalanta.app.changes.configuration_changes import ConfigurationChanges
    from atalanta.runtime.lifecycle.reloader import Reloaded


class ConfigurationRequests:
    """The requests. `configuration` is that of the start."""

    def __init__(self, configuration: Configuration, storage: Storage) -> None:
        self._configuration = configuration
        self._storage = storage
        self._changes: ConfigurationChanges | None = None

    def contents(self) -> dict[Path, bytes]:
        """Returns the contents of files that count as changed until the restart, see read_broker_xml."""
        return {} if self._changes is None else self._changes.contents()

    def attempt(self, request: ConfigurationRequest) -> FirstNeeded:
        """Returns a request for the reloader."""
        return FirstNeeded(self, request)

    def opened(self) -> ConfigurationChanges:
        """Returns the state, which the first request makes."""
        if self._changes is None:
            from atalanta.app.changes.configuration_changes import ConfigurationChanges

            self._changes = ConfigurationChanges(self._configuration, self._storage)
        return self._changes


class FirstNeeded:
    """A request whose modules are imported by its first step, on a thread: the event loop does not wait for them."""

    def __init__(self, requests: ConfigurationRequests, request: ConfigurationRequest) -> None:
        self._requests = requests
        self._request = request
        self._attempt: ConfigurationChangeAttempt | None = None

    def begin(self) -> Reloaded | None:
        """Implements ConfigurationAttempt.begin."""
        from atalanta.app.changes.attempt import ConfigurationChangeAttempt

        self._attempt = ConfigurationChangeAttempt(self._requests.opened(), self._request)
        return self._attempt.begin()

    def end(self, problem: str) -> ConfigurationAnswer:
        """Implements ConfigurationAttempt.end."""
        assert self._attempt is not None
        return self._attempt.end(problem)
