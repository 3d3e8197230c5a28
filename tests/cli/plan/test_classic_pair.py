"""`check`, `plan` and `convert` of two activemq.xml that name one directory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from atalanta.cli.application import application
from atalanta.cli.instance.check import check_files
from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.checks.findings import INFORMATION
from tests.config.activemq.classic_files import classic_file

INSIDE = """<persistenceAdapter><kahaDB directory="{store}"/></persistenceAdapter>
<transportConnectors><transportConnector name="openwire" uri="tcp://0.0.0.0:61616"/></transportConnectors>"""


def pair(folder: Path, names: tuple[str, str] = ("shop", "shop")) -> list[Path]:
    inside = INSIDE.format(store=folder / "store")
    return [classic_file(folder / f"host-{at}", inside, f'brokerName="{name}"') for at, name in enumerate(names)]


@pytest.mark.parametrize("names", [("shop", "shop"), ("north", "south")])
@pytest.mark.parametrize("convert", [False, True])
def test_check_says_that_they_are_one_pair(tmp_path: Path, names: tuple[str, str], convert: bool) -> None:
    """It has nothing against two names, one name, two equal roles, or equal ports on two hosts."""
    paths = pair(tmp_path, names)
    alone = {each.text for path in paths for each in check_files([path])}
    if convert:
        targets = [path.with_name("broker.xml") for path in paths]
        for path, target in zip(paths, targets, strict=True):
            assert CliRunner().invoke(application, ["convert", str(path), "-o", str(target)]).exit_code == 0
            assert read_broker_xml(target).ha.equals
            alone |= {each.text for each in check_files([target])}
        paths = targets
    found = [each for each in check_files(paths) if each.text not in alone]
    assert {each.level for each in found} == {INFORMATION}, found
    assert any(f"it is one pair with {paths[0]}" in each.text for each in found)


def test_plan_shows_who_waits(tmp_path: Path) -> None:
    done = CliRunner().invoke(application, ["plan", "--json", *map(str, pair(tmp_path))])
    assert done.exit_code == 0, done.output
    (backing,) = json.loads(done.stdout)["backups"]
    assert (backing["serves"], backing["waiting"], backing["form"]) == ("host-0", ["host-1"], "shared store")


def test_brokers_that_share_only_a_data_directory_are_no_pair(tmp_path: Path) -> None:
    attributes = f'dataDirectory="{tmp_path}/data" brokerName="{{}}"'
    paths = [classic_file(tmp_path / name, "", attributes.format(name)) for name in ("north", "south")]
    texts = [each.text for each in check_files(paths)]
    assert not [each for each in texts if "pair" in each or "journal folder" in each], texts
    same = [classic_file(tmp_path / f"host-{at}", "", attributes.format("north")) for at in (1, 2)]
    assert any("it is one pair with" in each.text for each in check_files(same))
