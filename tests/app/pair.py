"""A pair of `atalanta run` processes with a shared store, for tests: a primary, a backup, one folder."""

from __future__ import annotations

from pathlib import Path

from tests.broker_process import BrokerProcess, BrokerProcesses
from tests.broker_xml import ORDERS, SMALL_SEGMENTS, cluster, write_broker_xml
from tests.ports import free_port

POLICY = "<ha-policy><shared-store><{role}>{policy}</{role}></shared-store></ha-policy>\n"


class Pair(BrokerProcesses[BrokerProcess]):
    """`with Pair(tmp_path) as pair:` ends both processes. `primary` and `backup` are the elements of each policy."""

    def __init__(self, folder: Path, primary: str = "", backup: str = "", own: str = "", more: str = "") -> None:
        first, second = free_port(), free_port()
        self.store = folder / "store"
        processes = []
        for role, port, other, policy in (("primary", first, second, primary), ("backup", second, first, backup)):
            form = SMALL_SEGMENTS + cluster(port, [other]) + POLICY.format(role=role, policy=policy) + ORDERS + more
            xml = write_broker_xml(folder / role, port, role, form, data=self.store, own=own)
            processes.append(BrokerProcess(xml, port=port))
        super().__init__(processes)
        self.primary, self.backup = processes

    def start(self) -> None:
        """Starts the primary, then the backup, and waits until both have their role."""
        self.primary.start()
        self.primary.until_role("active")
        self.backup.start()
        self.backup.until_role("passive")
