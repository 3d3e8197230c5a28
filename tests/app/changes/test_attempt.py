"""Changes of a node's configuration: checked, written, applied, kept, taken back; and everything that is refused."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from atalanta.app.changes import history
from atalanta.app.changes.written_file import why_not_written
from atalanta.kernel.settings.configuration_request import CHANGE, ConfigurationOutcome
from tests.app.changes.attempt_rig import BROKER, Attempts, added

REMOVED: dict[str, object] = {"action": "remove", "kind": "bridge", "name": "one"}


def element(listing: object, kind: str, name: str) -> dict[str, object]:
    """An element of listConfiguration."""
    assert isinstance(listing, dict)
    [found] = [each for each in listing["elements"] if (each["kind"], each["name"]) == (kind, name)]
    assert isinstance(found, dict)
    return found


def test_the_listing_has_elements_users_and_parameters_and_no_secret(tmp_path: Path) -> None:
    found = Attempts(tmp_path).listing()
    assert (found["file"], found["form"], found["writable"], found["why"]) == ("broker.xml", "broker.xml", True, "")
    one = element(found, "bridge", "one")
    assert one["line"] == 16
    assert one["values"] == {
        "name": "one", "queue-name": "orders", "user": "hidden", "password": "hidden", "static-connectors": "other",
    }  # fmt: skip
    assert element(found, "connector", "other")["used_by"] == ["bridge one"]
    [interval] = [each for each in found["parameters"]["bridge"] if each["name"] == "retry-interval"]
    assert (interval["default"], interval["unit"]) == ("2000", "ms")
    assert interval["editable"] and not interval["list"]
    assert len(found["parameters"]) == 12
    assert "geheim" not in json.dumps(found)


def test_a_change_is_written_applied_kept_and_told(tmp_path: Path) -> None:
    rig = Attempts(tmp_path)
    os.chmod(rig.path, 0o640)
    answer = rig.change(added(values={"concurrency": "2"}))
    assert answer["refused"] == "" and answer["written"] and answer["why_not_written"] == ""
    assert answer["now"] == ["bridge 'two' is added"] and answer["after_restart"] == []
    assert '+      <bridge name="two">' in answer["difference"].splitlines()
    assert "geheim" not in json.dumps(answer)
    assert [bridge.name for bridge in rig.applied[0].config.bridges.bridges] == ["one", "two"]
    text = rig.path.read_text()
    assert "<!-- to the other shop -->" in text and '<bridge name="two">' in text
    assert stat.S_IMODE(rig.path.stat().st_mode) == 0o640
    assert (tmp_path / "broker.xml.former").read_text() == BROKER
    assert rig.listing()["digest"] == answer["digest"]
    ends = [each["to"] for each in answer["picture"]["after"]["links"] if each["name"] == "two"]
    assert ends == ["127.0.0.1:61617"]
    [kept] = rig.history()
    assert (kept["user"], kept["from"], kept["undone"], kept["written"]) == ("admin", "192.168.7.7", False, True)
    assert kept["changes"][0]["name"] == "two" and kept["difference"] == answer["difference"]


def test_the_outcome_of_a_change_names_address_and_elements(tmp_path: Path) -> None:
    rig = Attempts(tmp_path)
    rig.change(added())
    assert rig.last.outcome == ConfigurationOutcome("192.168.7.7", "add bridge 'two'")
    rig.change(added())
    assert rig.last.outcome is not None and "there is a bridge 'two' already" in rig.last.outcome.refused


def test_a_preview_writes_nothing(tmp_path: Path) -> None:
    rig = Attempts(tmp_path)
    answer = rig.preview(added())
    assert answer["refused"] == "" and not answer["written"] and '<bridge name="two">' in answer["difference"]
    assert rig.path.read_text() == BROKER and not rig.applied and rig.history() == [] and rig.last.outcome is None


def test_an_undo_brings_every_byte_back_also_after_a_restart_and_can_be_undone(tmp_path: Path) -> None:
    rig = Attempts(tmp_path)
    rig.change(REMOVED)
    rig.change({"action": "add", "kind": "divert", "name": "d", "values": {"address": "a", "forwarding-address": "b"}})
    rig.start()
    second, first = rig.history()
    assert rig.undo(first["id"])["refused"] == ""
    assert rig.last.outcome == ConfigurationOutcome("10.0.0.1:5", "undo bridge 'one'", undone=first["id"])
    assert rig.undo(second["id"])["now"] == ["divert 'd' is removed"]
    assert rig.path.read_text() == BROKER
    assert [each["undone"] for each in rig.history()] == [False, False, True, True]
    assert "was taken back already" in rig.undo(first["id"])["refused"]
    assert rig.undo(rig.history()[1]["id"])["refused"] == ""
    assert '<bridge name="one">' not in rig.path.read_text()


def test_an_undo_of_what_has_changed_since_is_refused(tmp_path: Path) -> None:
    rig = Attempts(tmp_path)
    rig.change(added())
    rig.change({"action": "change", "kind": "bridge", "name": "two", "values": {"queue-name": "q"}})
    first = rig.history()[1]
    text = rig.path.read_text()
    assert "broker.xml has changed at this place since" in rig.undo(first["id"])["refused"]
    assert rig.path.read_text() == text and "there is no change 'x'" in rig.undo("x")["refused"]


def test_the_last_changes_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert history.KEPT == 20
    monkeypatch.setattr(history, "KEPT", 3)
    rig = Attempts(tmp_path)
    for number in range(5):
        assert rig.change(added(f"b{number}"))["refused"] == ""
    rig.start()
    assert [each["changes"][0]["name"] for each in rig.history()] == ["b4", "b3", "b2"]
    [kept] = (tmp_path / "data").iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    kept.write_text("{")
    rig.start()
    assert rig.history() == [] and rig.change(added("last"))["refused"] == ""


def test_a_second_operator_sees_what_the_first_has_changed(tmp_path: Path) -> None:
    rig = Attempts(tmp_path)
    digest = rig.listing()["digest"]
    rig.change(added("mine"), digest=digest)
    text = rig.path.read_text()
    answer = rig.change(added("yours"), digest=digest)
    assert "the file has changed since it was read" in answer["refused"]
    assert '+      <bridge name="mine">' in answer["difference"] and answer["digest"] == rig.listing()["digest"]
    assert rig.path.read_text() == text and len(rig.history()) == 1
    rig.path.write_text(text.replace("shop", "stock"))  # an editor, and a reload
    assert "+    <name>stock</name>" in rig.change(added("yours"), digest=answer["digest"])["difference"]
    assert rig.change(added("yours"), digest="0" * 64)["difference"] == ""


def test_errors_of_the_readers_and_checks_refuse(tmp_path: Path) -> None:
    rig = Attempts(tmp_path)
    cases: list[tuple[dict[str, object], str]] = [
        (added(values={"retry-interval": "soon"}), "'soon' is not a number"),
        (added(values={"static-connectors": ["none"]}), "there is no connector 'none'"),
        (added(values={"filter": "a = = b"}), "filter: "),
        (added(values={"discovery-group-ref": "d"}), "has static connectors and a discovery group"),
        (
            {"action": "add", "kind": "acceptor", "name": "b", "values": {"host": "127.0.0.1", "port": "61616"}},
            "both listen on port 61616",
        ),
        ({"action": "add", "kind": "acceptor", "name": "b", "values": {"host": "h", "port": "70000"}}, "70000"),
    ]
    for change, why in cases:
        answer = rig.change(change)
        assert why in answer["refused"], answer
        assert [each["severity"] for each in answer["problems"]][:1] == ["error"]
        assert answer["now"] == [] and not answer["written"]
    assert rig.path.read_text() == BROKER and rig.history() == [] and not rig.applied


def test_what_others_use_is_not_removed(tmp_path: Path) -> None:
    rig = Attempts(tmp_path)
    gone: dict[str, object] = {"action": "remove", "kind": "connector", "name": "other"}
    assert rig.change(gone)["refused"] == "connector 'other' is used by bridge one: change or remove that first"
    assert rig.change(gone, REMOVED)["refused"] == ""


def test_what_cannot_be_applied_is_put_back(tmp_path: Path) -> None:
    rig = Attempts(tmp_path)
    rig.problem = "acceptor 'b': Address already in use"
    answer = rig.change(added())
    assert answer["refused"] == "acceptor 'b': Address already in use; the former file is back"
    assert not answer["written"] and answer["now"] == []
    assert rig.path.read_text() == BROKER and rig.history() == []
    assert answer["digest"] == rig.listing()["digest"]


def test_a_change_needs_the_option(tmp_path: Path) -> None:
    rig = Attempts(tmp_path, own=None)
    found = rig.listing()
    assert not found["writable"] and not found["changeable"]
    assert "write `configuration-changes = true` in atalanta.toml" in found["why"]
    assert rig.change(added())["refused"] == found["why"] == rig.preview(added())["refused"]
    assert rig.path.read_text() == BROKER


def test_a_read_only_file_keeps_its_text_and_the_change_counts_until_the_restart(tmp_path: Path) -> None:
    rig = Attempts(tmp_path)
    os.chmod(rig.path, 0o440)
    assert not rig.listing()["writable"] and rig.listing()["changeable"]
    answer = rig.change(added())
    assert answer["refused"] == "" and not answer["written"] and answer["why_not_written"] == "broker.xml is read-only"
    assert [bridge.name for bridge in rig.applied[0].config.bridges.bridges] == ["one", "two"]
    assert rig.path.read_text() == BROKER
    assert element(rig.listing(), "bridge", "two")["from"] == "runtime"
    assert element(rig.listing(), "bridge", "one")["from"] == "file"
    assert b'name="two"' in rig.requests.contents()[rig.path]
    downloaded = rig.download()
    assert downloaded["file"] == "broker.xml" and '<bridge name="two">' in downloaded["text"]
    assert "geheim" not in json.dumps(downloaded) and "<password>****</password>" in downloaded["text"]
    assert rig.change(added("three"))["refused"] == ""
    assert rig.undo(rig.history()[1]["id"])["refused"] == ""
    assert [each["name"] for each in rig.listing()["elements"] if each["from"] == "runtime"] == ["three"]
    rig.start()
    assert [each["name"] for each in rig.listing()["elements"] if each["kind"] == "bridge"] == ["one"]
    assert len(rig.history()) == 3


def test_a_file_that_somebody_changes_counts_again(tmp_path: Path) -> None:
    rig = Attempts(tmp_path)
    os.chmod(rig.path, 0o440)
    rig.change(added())
    os.chmod(rig.path, 0o640)
    rig.path.write_text(BROKER.replace("shop", "stock"))
    assert rig.requests.contents() == {}
    assert [each["name"] for each in rig.listing()["elements"] if each["kind"] == "bridge"] == ["one"]


def test_a_config_map_is_not_written_and_another_link_stays(tmp_path: Path) -> None:
    mounted = tmp_path / "mounted"
    (mounted / "..2026").mkdir(parents=True)
    (mounted / "..2026" / "broker.xml").write_text(BROKER)
    (mounted / "..data").symlink_to("..2026")
    (mounted / "broker.xml").symlink_to("..data/broker.xml")
    assert why_not_written(mounted / "broker.xml") == (
        "broker.xml is of a ConfigMap of Kubernetes: change the ConfigMap"
    )
    (tmp_path / "real" / "data").mkdir(parents=True)
    (tmp_path / "real" / "broker.xml").write_text(BROKER)
    (tmp_path / "broker.xml").symlink_to("real/broker.xml")
    (tmp_path / "atalanta.toml").write_text("configuration-changes = true\n")
    rig = Attempts(tmp_path)
    assert rig.change(added())["written"]
    assert rig.path.is_symlink() and '<bridge name="two">' in (tmp_path / "real" / "broker.xml").read_text()


def test_a_hard_link_and_a_missing_folder_are_not_written(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    os.link(tmp_path / "a", tmp_path / "b")
    assert "a second name" in why_not_written(tmp_path / "a")
    assert "read-only" in why_not_written(tmp_path / "none" / "a")


def test_network_connectors_are_changed_in_atalanta_toml(tmp_path: Path) -> None:
    rig = Attempts(tmp_path)
    values: dict[str, object] = {"uri": "static:(tcp://127.0.0.1:61617)", "duplex": "true"}
    answer = rig.change({"action": "add", "kind": "network-connector", "name": "nc", "values": values})
    assert answer["refused"] == "" and answer["written"]
    assert (tmp_path / "atalanta.toml").read_text().startswith("configuration-changes = true\n\n[networks.nc]\n")
    found = element(rig.listing(), "network-connector", "nc")
    assert (found["file"], found["values"]) == ("atalanta.toml", {"name": "nc", **values})
    bad: dict[str, object] = {"networkTTL": "-7"}
    answer = rig.change({"action": "change", "kind": "network-connector", "name": "nc", "values": bad})
    assert "-7 is less than -1" in answer["refused"]
    assert rig.undo(rig.history()[0]["id"])["refused"] == ""
    assert (tmp_path / "atalanta.toml").read_text() == "configuration-changes = true\n"


@pytest.mark.parametrize(
    "text, why",
    [
        ("[]", "a JSON object"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("x" * (10 << 20), "at most 262144 characters"),
        ('{"digest": 1}', "'changes' is a list"),
        ('{"changes": []}', "at least one change"),
        ('{"changes": [1]}', "a change is an object"),
        (json.dumps({"changes": [REMOVED] * 101}), "at most 100 changes"),
        ('{"changes": [{"action": "exec", "kind": "bridge", "name": "x"}]}', "the action 'exec' is none of"),
        ('{"changes": [{"action": "add", "kind": "bridge", "name": "a\\u0000b"}]}', "without control characters"),
        ('{"changes": [{"action": "add", "kind": "bridge", "name": " "}]}', "cannot be a name"),
        (json.dumps({"changes": [added("x" * 300)]}), "at most 255 characters"),
        (json.dumps({"changes": [added(values={"filter": "a\nb"})]}), "control characters"),
        (json.dumps({"changes": [added(values={"filter": "${HOME}"})]}), "would read a value of the node's"),
        (json.dumps({"changes": [added(values={"filter": {"a": 1}})]}), "a value is a text"),
        (json.dumps({"changes": [added(values={"filter": "x" * 20_000})]}), "more than 16384 characters"),
    ],
)
def test_requests_that_cannot_be_read_are_refused(tmp_path: Path, text: str, why: str) -> None:
    rig = Attempts(tmp_path)
    answer = rig.ask(CHANGE, text)
    assert why in answer["refused"] and not answer["written"]
    assert rig.path.read_text() == BROKER


CLASSIC = """<beans xmlns="http://www.springframework.org/schema/beans">
  <broker xmlns="http://activemq.apache.org/schema/core" brokerName="classic" persistent="false">
    <!-- to the others -->
    <networkConnectors>
      <networkConnector name="nc" uri="static:(tcp://127.0.0.1:61617)" password="geheim"/>
    </networkConnectors>
    <transportConnectors>
      <transportConnector name="ow" uri="tcp://127.0.0.1:61616"/>
    </transportConnectors>
  </broker>
</beans>
"""


def test_connectors_of_an_activemq_xml_count_until_the_restart(tmp_path: Path) -> None:
    rig = Attempts(tmp_path, CLASSIC)
    found = rig.listing()
    assert (found["form"], found["changeable"], found["writable"]) == ("activemq.xml", True, False)
    assert element(found, "network-connector", "nc")["values"] == {
        "name": "nc", "uri": "static:(tcp://127.0.0.1:61617)", "password": "hidden",
    }  # fmt: skip
    assert element(found, "acceptor", "ow")["values"] == {"name": "ow", "uri": "tcp://127.0.0.1:61616"}
    assert [each["name"] for each in found["parameters"]["acceptor"]] == ["name", "uri"]
    answer = rig.change(
        {"action": "change", "kind": "network-connector", "name": "nc", "values": {"duplex": "true"}},
        {"action": "add", "kind": "acceptor", "name": "stomp", "values": {"uri": "stomp://127.0.0.1:61613"}},
    )
    assert (answer["refused"], answer["written"]) == ("", False)
    assert answer["why_not_written"] == found["why"] == (
        "an activemq.xml is not written by management: take the difference into broker.xml"
    )
    lines = [line for line in answer["difference"].splitlines() if line[:1] in "+-"][2:]
    assert lines == [
        '-      <networkConnector name="nc" uri="static:(tcp://127.0.0.1:61617)" password="****"/>',
        '+      <networkConnector name="nc" uri="static:(tcp://127.0.0.1:61617)" password="****" duplex="true"/>',
        '+      <transportConnector name="stomp" uri="stomp://127.0.0.1:61613"/>',
    ]
    assert [each.name for each in rig.applied[0].config.acceptors] == ["ow", "stomp"]
    assert rig.applied[0].config.networks.connectors[0].duplex
    assert rig.path.read_text() == CLASSIC
    assert rig.undo(rig.history()[0]["id"])["refused"] == "" and rig.listing()["digest"] == found["digest"]
    for kind, values, why in (
        ("bridge", {"queue-name": "q"}, "'bridge' is not changed by management in an activemq.xml"),
        ("acceptor", {"uri": "ssl://h:1?transport.keyStorePath=/etc/x"}, "names a file or a password"),
        ("network-connector", {"uri": "static:(tcp://u:p@h:1)"}, "names a file or a password"),
        ("network-connector", {"uri": "static:(tcp://h:1)", "password": "x"}, "password is not changed by management"),
    ):
        answer = rig.change({"action": "add", "kind": kind, "name": "new", "values": values})
        assert why in answer["refused"], answer


def test_a_standalone_xml_is_shown_and_not_changed(tmp_path: Path) -> None:
    text = """<subsystem xmlns="urn:jboss:domain:messaging-activemq:15.0"><server name="default">
      <in-vm-acceptor name="in-vm" server-id="0"/><address-setting name="#" max-delivery-attempts="3"/>
      </server></subsystem>"""
    rig = Attempts(tmp_path, text)
    found = rig.listing()
    assert (found["form"], found["changeable"]) == ("standalone.xml", False)
    assert "`atalanta convert` makes a broker.xml of it" in found["why"]
    values = element(found, "address-setting", "#")["values"]
    assert isinstance(values, dict) and values["max-delivery-attempts"] == "3"
    assert rig.change(REMOVED)["refused"] == found["why"]


def test_what_counts_after_a_restart_says_why(tmp_path: Path) -> None:
    text = BROKER.replace(
        "<bridges>",
        """<cluster-connections>
      <cluster-connection name="c"><connector-ref>other</connector-ref><static-connectors/></cluster-connection>
    </cluster-connections>
    <bridges>""",
    )
    rig = Attempts(tmp_path, text)
    assert "members know the node by them" in str(element(rig.listing(), "cluster-connection", "c")["fixed"])
    connection = {"action": "change", "kind": "cluster-connection", "name": "c"}
    answer = rig.preview({**connection, "values": {"max-hops": "2"}})
    assert answer["now"] == []
    why = "members know the node by them, and have bindings and queues by them"
    assert answer["after_restart"] == [f"cluster-connection 'c' is changed: max-hops: {why}"]
    answer = rig.preview({**connection, "values": {"retry-interval": 9}})
    assert answer["now"] == ["cluster-connection 'c' is changed"] and answer["after_restart"] == []
    answer = rig.preview({"action": "change", "kind": "connector", "name": "other", "values": {"port": "1"}})
    assert len(answer["after_restart"]) == 1
