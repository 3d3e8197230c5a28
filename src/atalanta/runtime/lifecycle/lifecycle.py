"""The parts of one run of a node that start and stop with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from atalanta.kernel.security.user_operation import UserAnswer, UserOperation
from atalanta.kernel.settings.broker_config import StoredSettings
from atalanta.kernel.settings.configuration_request import ConfigurationRequest
from atalanta.kernel.settings.settings_change import SettingsChange
from atalanta.runtime.lifecycle.critical_analyzer import CriticalAnalyzer
from atalanta.runtime.lifecycle.reloader import ConfigurationAttempt, Reloader

if TYPE_CHECKING:
    from atalanta.runtime.lifecycle.graceful_shutdown import GracefulShutdown, ScaleDownAtStop


class ActiveMember(Protocol):
    """The active node of a replicated group."""

    @property
    def handed_over(self) -> bool:
        """Returns whether another member has the service."""

    @property
    def deposed(self) -> str:
        """Returns why another member has the service, against the will of this node; "" if none has."""

    def has_successor(self) -> bool:
        """Returns whether a member is there that could take it."""

    def hand_over(self, now: int) -> bool:
        """Gives the service to a member that has everything. False: not now, perhaps a little later."""


@dataclass(frozen=True)
class Lifecycle:
    """The reload, the analyzer, and what a stop waits for. None means that the node does without.

    `users` executes an operation on the files of users, on a thread; `change_settings` changes the stored settings.
    `member` is a node that hands over to another member of its group when it has stopped.
    `configuration` begins a request about the configuration files.
    `arriving` tells whether clients are still connecting that the stopping node redirects.
    """

    reloader: Reloader | None = None
    users: Callable[[UserOperation], UserAnswer] | None = None
    analyzer: CriticalAnalyzer | None = None
    scale_down: ScaleDownAtStop | None = None
    graceful_shutdown: GracefulShutdown | None = None
    arriving: Callable[[], bool] | None = None
    change_settings: Callable[[SettingsChange], StoredSettings] | None = None
    member: ActiveMember | None = None
    configuration: Callable[[ConfigurationRequest], ConfigurationAttempt] | None = None
