"""Colocated `atalanta run` processes, for tests: each is a primary, and hosts backups of the others."""

from __future__ import annotations

from pathlib import Path

from tests.app.group import Member
from tests.broker_process import BrokerProcesses
from tests.broker_xml import ORDERS, RETRIES, SMALL_SEGMENTS, cluster, write_broker_xml
from tests.ports import HOSTED_BACKUP_OFFSET, free_port

POLICY = """<ha-policy><{form}><colocated>
      <request-backup>true</request-backup>
      <backup-request-retry-interval>500</backup-request-retry-interval>
      <backup-port-offset>{offset}</backup-port-offset>
      <backup><allow-failback>true</allow-failback></backup>
    </colocated></{form}></ha-policy>
    """


class Colocated(BrokerProcesses[Member]):
    """`with Colocated(tmp_path, "replication") as nodes:` ends all processes. The names are a, b and so on."""

    def __init__(self, folder: Path, form: str, count: int = 2) -> None:
        own = ""
        if form == "replication":
            (folder / "register").mkdir()
            own = f'[ha]\nfailback_after_s = 0\n[ha.manager]\nkind = "file"\nlocks-folder = "{folder / "register"}"\n'
        ports = [free_port() for _ in range(count)]
        self.offset = HOSTED_BACKUP_OFFSET
        self.ports = ports
        self.nodes: list[Member] = []
        for name, port in zip("abc", ports, strict=False):
            more = SMALL_SEGMENTS + cluster(port, [each for each in ports if each != port], RETRIES)
            more += POLICY.format(form=form, offset=self.offset) + ORDERS
            self.nodes.append(Member(write_broker_xml(folder / name, port, name, more, own=own), port=port)
            )
        super().__init__(self.nodes)

    def start(self) -> None:
        """Starts all, and waits until each has a backup."""
        for each in self.nodes:
            each.start()
        for each in self.nodes:
            each.until_logged("backup_hosted")
