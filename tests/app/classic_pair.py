"""Brokers from activemq.xml files that name one directory, as real processes."""

from __future__ import annotations

from pathlib import Path

from tests.broker_process import BrokerProcess, BrokerProcesses
from tests.config.activemq.classic_files import classic_file
from tests.ports import free_port

INSIDE = """<destinations><queue physicalName="orders"/></destinations>
<persistenceAdapter><kahaDB directory="{store}" journalMaxFileLength="256kb" {more}>
<locker>{locker}</locker></kahaDB></persistenceAdapter>
<transportConnectors><transportConnector name="openwire" uri="tcp://127.0.0.1:{port}"/></transportConnectors>"""


class ClassicProcess(BrokerProcess):
    """One of the brokers; `name` is its brokerName."""

    def __init__(self, path: Path, port: int, name: str) -> None:
        super().__init__(path, port=port)
        self.name = name


class ClassicBrokers(BrokerProcesses[ClassicProcess]):
    """`with ClassicBrokers(tmp_path, 2) as brokers:` ends all of them. Each has the name "shop", unless `names` say
    another one."""

    def __init__(
        self,
        folder: Path,
        count: int,
        names: tuple[str, ...] = (),
        attributes: str = "",
        locker: str = "",
        more: str = "",
    ) -> None:
        """`attributes` are those of the broker, `more` those of its store."""
        self.store = folder / "store"
        processes: list[ClassicProcess] = []
        for index in range(count):
            port = free_port()
            name = names[index] if names else "shop"
            inside = INSIDE.format(store=self.store, port=port, locker=locker, more=more)
            path = classic_file(folder / str(index), inside, f'brokerName="{name}" {attributes}')
            path.with_name("atalanta.toml").write_text("[ha]\nlease_ms = 500\n")
            processes.append(ClassicProcess(path, port, name))
        super().__init__(processes)

    def start(self) -> None:
        """Starts all of them: the first one serves."""
        for each in self.processes:
            each.start()
            each.until_role("active" if each is self.processes[0] else "passive")
