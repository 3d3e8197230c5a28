"""One member of a replicated group: its folder, its register, its files; what its runs share."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid

from atalanta.app.connectors import announced_connectors, transport
from atalanta.app.group.process_guard import process_guard
from atalanta.app.running_node import Ready
from atalanta.app.startup_error import StartupError
from atalanta.app.storage import Storage, disk_reserve, refuse_artemis_journal
from atalanta.cluster.connection.colocation_seat import ColocationSeat
from atalanta.cluster.replication.member_handshake import member_key
from atalanta.config.configuration import Configuration
from atalanta.config.stored_settings import StoredSettingsFile
from atalanta.files.replace import replace_file
from atalanta.ha.lease import LeaseTerms
from atalanta.ha.policy import PRIMARY
from atalanta.ha.register import CompareAndSet
from atalanta.runtime.disk.data_folder import make_folder
from atalanta.runtime.disk.folder_lock import DataFolderError
from atalanta.runtime.ha.group.member_folder import MemberFolder, group_id, open_member_folder
from atalanta.runtime.ha.group.member_status import (
    FollowerStatus,
    MemberStatus,
    remove_status,
    write_status,
)
from atalanta.runtime.ha.guard.line import END_S, GuardLine
from atalanta.runtime.ha.managers.configured_manager import ManagerRefused, configured_manager
from atalanta.runtime.ha.managers.manager import Found, Manager, ManagerAnswer, ManagerUnavailable
from atalanta.runtime.ha.managers.voter_connection import password_key
from atalanta.runtime.ha.store_requests import withdraw_requests
from atalanta.runtime.ids import SystemIds
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.logs import log_event

log = logging.getLogger("atalanta.app")


def open_member(configuration: Configuration) -> MemberFolder:
    """Opens the journal folder of this member. StartupError if it cannot be used."""
    journal = configuration.journal_folder
    refuse_artemis_journal(journal)
    fixed = configuration.ha.coordination_id
    try:
        folder = open_member_folder(
            journal, configuration.broker.name, None if fixed is None else group_id(fixed), SystemIds().secret,
            wait_s=END_S,
        )
        withdraw_requests(journal)  # what was asked of an earlier process, and of another state of the group
    except DataFolderError as error:
        raise StartupError(exit_codes.FOLDER_TAKEN, [str(error)]) from error
    except OSError as error:
        line = f"the data folder {journal} cannot be used: {error}"
        raise StartupError(exit_codes.DISK_FAILED, [line]) from error
    if folder.lost:
        tell_renamed(folder)
    return folder


def tell_renamed(folder: MemberFolder) -> None:
    """Tells that the folder has a new name, because it lacks what it had under the former one."""
    log_event(log, "member_renamed", {"was": folder.lost, "member": folder.member, "folder": folder.journal})


class UnknownGroup:
    """The manager of a member that does not know its group yet: its register has no name."""

    async def read(self) -> Found | None:
        """Implements Manager.read."""
        raise ManagerUnavailable("this member does not know the node id of its group yet")

    async def compare_and_set(self, request: CompareAndSet) -> ManagerAnswer:
        """Implements Manager.compare_and_set."""
        raise ManagerUnavailable("this member does not know the node id of its group yet")

    async def close(self) -> None:
        """Implements Manager.close."""


class GroupMember:
    """The state that the runs of one process share."""

    def __init__(
        self, configuration: Configuration, folder: MemberFolder, line: GuardLine | None, ready: Ready,
        colocated: ColocationSeat | None = None,
    ) -> None:
        """`line` is that to the guard of this process; None without one. `colocated`: of a colocated primary."""
        self.configuration = configuration
        self.folder = folder
        self.ready = ready
        self.colocated = colocated
        self.policy = configuration.ha
        self.primary = self.policy.role == PRIMARY
        self.group = self.policy.group_name or ""
        self.terms = LeaseTerms(self.policy.lease_ms * 1_000_000)
        self.connectors = {
            name: transport(name, values) for name, values in announced_connectors(configuration).items()
        }
        broker = configuration.broker
        self.key = member_key(broker.cluster_user, broker.cluster_password)
        self.guard_key = password_key(broker.cluster_password)
        self.guard = process_guard(configuration, line, self.guard_key)
        self.damaged: dict[str, bool] = {}  # see ReplicationSeat
        self.stored_settings = StoredSettingsFile.of(configuration)
        self._manager: Manager | None = None
        self._beat = 0
        self._told = ""
        self._told_passive = False
        self.kept_messages = False  # a scale-down could not move all: this process does not try it again
        # Why the role is what it is.
        self.why_active = ""
        self.why_passive = "the process starts"

    @property
    def manager(self) -> Manager:
        """The manager of the group's register. StartupError if it is configured wrongly."""
        config, node_id = self.policy.manager, self.folder.node_id
        if config is None:
            raise AssertionError("a member without a manager")
        if node_id is None:
            return UnknownGroup()
        if self._manager is None:
            try:
                self._manager = configured_manager(config, str(node_id), self.configuration.instance)
            except ManagerRefused as error:
                file, number = self.configuration.manager_position()
                line = f"{file}:{number}: the manager of the replication: {error}"
                raise StartupError(exit_codes.BAD_CONFIGURATION, [line]) from error
        return self._manager

    def rename(self) -> None:
        """Gives this member a new name: its journal is cut next. StartupError if that cannot be stored."""
        try:
            self.folder.rename()
        except OSError as error:
            line = f"the data folder {self.folder.journal} cannot be used: {error}"
            raise StartupError(exit_codes.DISK_FAILED, [line]) from error
        tell_renamed(self.folder)

    def storage(self, reserved: bool) -> Storage:
        """Returns the storage of the next run. `reserved`: files of the journal are made ahead."""
        configuration, folder = self.configuration, self.folder
        node_id = folder.node_id
        if node_id is None:  # it has met no active node yet, and stores nothing
            return Storage(uuid.UUID(int=0), folder)
        pages = configuration.paging_folder / str(node_id)
        large = configuration.large_messages_folder / str(node_id)
        try:
            make_folder(pages)
            make_folder(large)
        except (OSError, DataFolderError) as error:
            raise StartupError(exit_codes.DISK_FAILED, [f"the data folders cannot be used: {error}"]) from error
        reserve = disk_reserve(folder.journal, configuration) if reserved else None
        return Storage(node_id, folder, pages, large, reserve, self.stored_settings)

    def read_settings(self) -> bytes:
        """Returns the stored management settings, b"" without any."""
        path = self.stored_settings.path
        try:
            return b"" if path is None else path.read_bytes()
        except FileNotFoundError:
            return b""

    def write_settings(self, data: bytes) -> bool:
        """Stores the management settings of the active node. Returns whether they have changed. Raises OSError."""
        path = self.stored_settings.path
        if path is None or data == self.read_settings():
            return False
        if data:
            replace_file(path, data)
        else:
            path.unlink(missing_ok=True)
        return True

    async def tell(
        self, state: str, epoch: int, active: str, durable: int, behind: int, followers: list[FollowerStatus],
        waits: str = "",
    ) -> None:
        """Writes the status of this process. Raises OSError."""
        self._beat += 1
        status = MemberStatus(
            member=self.folder.member,
            role=self.policy.role,
            state=state,
            epoch=epoch,
            active=active,
            durable=durable,
            behind=behind,
            followers=followers,
            beat=self._beat,
            waits=waits,
        )
        await asyncio.to_thread(write_status, self.folder.journal, status)

    def tell_unusable(self, why: str) -> None:
        """Logs once that files of this member cannot be written or read."""
        if why != self._told:
            self._told = why
            log_event(log, "member_folder_unusable", {"why": why})

    async def close(self) -> None:
        """Ends what outlives the runs."""
        if self._manager is not None:
            await self._manager.close()
        with contextlib.suppress(OSError):  # it is of no use without the process
            remove_status(self.folder.journal)

    def told_active(self) -> None:
        """Records that the next passive run is told again."""
        self._told_passive = False

    def tell_passive(self) -> None:
        """Tells once that this process is passive."""
        if self._told_passive:
            return
        self._told_passive = True
        log_event(
            log,
            "member_passive",
            {
                "member": self.folder.member,
                "role": self.policy.role,
                "node_id": self.folder.node_id or "unknown",
                "why": self.why_passive,
            },
        )
        self.ready(["role=passive"])
