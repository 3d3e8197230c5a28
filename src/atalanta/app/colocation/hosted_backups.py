"""The hosted backups of one process, and what it keeps of them in its journal folder:

    <journal>/colocated.json   the backups that it hosts, and the members that host its own

Each hosted backup is a process of its own (`cli.run.run_hosted`), with the file of its host and other ports and folders
(config/hosted_backup.py). It ends with its host: in good order after SIGTERM, at once if the host is killed.
"""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from dataclasses import asdict
from pathlib import Path
from typing import Final

from atalanta.app.colocation.hosted_process import HostedProcess
from atalanta.app.startup_error import StartupError
from atalanta.cluster.connection.backup_call import ASK, BackupCall
from atalanta.cluster.connection.colocation_seat import ColocationSeat, HostingMember
from atalanta.config.configuration import Configuration, dialable
from atalanta.files.regular import read_regular
from atalanta.files.replace import replace_file
from atalanta.ha.policy import SHARED_STORE
from atalanta.ha.policy_elements import ColocationConfig, HostedBackup, ReplicationBackup
from atalanta.runtime.disk.data_folder import read_node_id
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.logs import log_event

log = logging.getLogger("atalanta.app")

FILE_NAME: Final = "colocated.json"
FILE_BYTES_MAX: Final = 1 << 20


class HostedBackups(ColocationSeat):
    """The processes by node id of their primaries. `guarded`: they have guards, as their host."""

    def __init__(self, configuration: Configuration, colocation: ColocationConfig, guarded: bool) -> None:
        connection = configuration.group_connection()
        assert connection is not None
        self._connector = dialable(configuration.connectors[connection.connector])
        self._offset = 0 if connection.connector in colocation.excluded else colocation.port_offset
        self._configuration = configuration
        self._guarded = guarded
        self._path = configuration.journal_folder / FILE_NAME
        self._processes: dict[str, HostedProcess] = {}
        self.backups_max = colocation.backups_max
        self.interval_ns = colocation.request_retry_interval_ms * 1_000_000 if colocation.request_backup else 0
        shared = configuration.ha.form == SHARED_STORE
        self.own = BackupCall(
            operation=ASK,
            node_id="",
            form=configuration.ha.form,
            group=configuration.ha.group_name or "",
            host=self._connector.host,
            port=self._connector.port,
            journal=str(configuration.journal_folder.absolute()) if shared else "",
            paging=str(configuration.paging_folder.absolute()) if shared else "",
            large_messages=str(configuration.large_messages_folder.absolute()) if shared else "",
        )
        backup = colocation.backup
        self.backup_group = (backup.group_name or "") if isinstance(backup, ReplicationBackup) else ""
        self._known, self._hosts = self._read()

    def _read(self) -> tuple[dict[str, HostedBackup], list[HostingMember]]:
        try:
            found = json.loads(read_regular(self._path, FILE_BYTES_MAX))
            hosted = [HostedBackup(**each) for each in found["hosted"]]
            return {each.node_id: each for each in hosted}, [HostingMember(**each) for each in found["hosts"]]
        except FileNotFoundError:
            return {}, []
        except (OSError, ValueError, TypeError, KeyError) as error:
            line = f"{self._path} cannot be read: {error}. Without this file the node hosts no backup until it is asked"
            raise StartupError(exit_codes.BAD_DATA, [line]) from error

    def _write(self, known: dict[str, HostedBackup], hosts: list[HostingMember]) -> None:
        described = {
            "hosted": [asdict(each) for each in known.values()],
            "hosts": [asdict(each) for each in hosts],
        }
        replace_file(self._path, json.dumps(described, indent=2).encode())
        self._known, self._hosts = known, hosts

    # -- life -----------------------------------------------------------------------------------
    def start(self) -> None:
        """Starts the backups that were hosted before, in the running loop."""
        for each in self._known.values():
            self._run(each)

    async def close(self) -> None:
        """Ends all processes in good order."""
        await asyncio.gather(*[each.close() for each in self._processes.values()])

    def _run(self, hosted: HostedBackup) -> None:
        process = HostedProcess(self._configuration.path, hosted, self._guarded)
        self._processes[hosted.node_id] = process
        process.start()

    # -- the seat -------------------------------------------------------------------------------
    def hosted(self) -> list[str]:
        """Implements ColocationSeat."""
        return list(self._known)

    def host(self, call: BackupCall) -> tuple[str, int]:
        """Implements ColocationSeat. A primary with another address or other folders gets a new process."""
        uuid.UUID(call.node_id)  # it becomes part of a folder's name
        before = self._known.get(call.node_id)
        number = before.number if before is not None else self._free_number()
        made = HostedBackup(
            call.node_id, number, call.host, call.port, call.journal, call.paging, call.large_messages
        )
        if made != before:
            if call.form == SHARED_STORE:
                self._check_store(call)
            self._write({**self._known, made.node_id: made}, self._hosts)
            log_event(log, "hosted_backup_accepted", {"node": made.node_id, "name": made.name, "of": call.host})
            self._end(made.node_id)
            self._run(made)
        return self._connector.host, self._connector.port + number * self._offset

    def _free_number(self) -> int:
        taken = {each.number for each in self._known.values()}
        return next(number for number in range(1, len(taken) + 2) if number not in taken)

    def _check_store(self, call: BackupCall) -> None:
        """Raises ValueError if this machine does not see the primary's folder: a store of its own would be empty."""
        try:
            found = read_node_id(Path(call.journal))
        except OSError as error:
            raise ValueError(str(error)) from error
        if found is None or str(found) != call.node_id:
            raise ValueError(f"{call.journal} is not the primary's folder there: mount it at the same path")

    def release(self, node_id: str) -> None:
        """Implements ColocationSeat."""
        if node_id in self._known:
            self._write({key: each for key, each in self._known.items() if key != node_id}, self._hosts)
            log_event(log, "hosted_backup_released", {"node": node_id})
            self._end(node_id)

    def _end(self, node_id: str) -> None:
        process = self._processes.pop(node_id, None)
        if process is not None:
            process.end()

    def hosts(self) -> list[HostingMember]:
        """Implements ColocationSeat."""
        return self._hosts

    def remember(self, hosts: list[HostingMember]) -> None:
        """Implements ColocationSeat."""
        self._write(self._known, hosts)
