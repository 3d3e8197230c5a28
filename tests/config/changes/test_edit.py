"""Changes of elements in the text of a broker.xml: each kind is added, changed, removed, and all else stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.config.changes.request import Change, ChangeRefused, Value
from tests.config.changes.broker_file import BROKER, changed, lines, texts

ADDED: list[tuple[str, str, dict[str, Value], list[str]]] = [
    (
        "broadcast-group", "second",
        {"connector-ref": ["self", "other"], "group-port": "1", "group-address": "231.1.1.1"},
        [
            "+      </broadcast-group>",
            '+      <broadcast-group name="second">',
            "+        <group-address>231.1.1.1</group-address>",
            "+        <group-port>1</group-port>",
            "+        <connector-ref>self</connector-ref>",
            "+        <connector-ref>other</connector-ref>",
        ],
    ),
    (
        "discovery-group", "second", {"group-address": "231.1.1.1", "group-port": "1"},
        [
            '+      <discovery-group name="second">',
            "+        <group-address>231.1.1.1</group-address>",
            "+        <group-port>1</group-port>",
            "+      </discovery-group>",
        ],
    ),
    (
        "cluster-connection", "second", {"connector-ref": "self", "static-connectors": "other", "max-hops": "2"},
        [
            '+      <cluster-connection name="second">',
            "+        <connector-ref>self</connector-ref>",
            "+        <max-hops>2</max-hops>",
            "+        <static-connectors>",
            "+          <connector-ref>other</connector-ref>",
            "+        </static-connectors>",
            "+      </cluster-connection>",
        ],
    ),
    (
        "grouping-handler", "groups", {"type": "LOCAL", "address": "jms"},
        [
            '+    <grouping-handler name="groups">',
            "+      <type>LOCAL</type>",
            "+      <address>jms</address>",
            "+    </grouping-handler>",
        ],
    ),
    (
        "bridge", "two", {"queue-name": "q", "discovery-group-ref": "found", "filter": "a > 'b' AND c = \"d\""},
        [
            '+      <bridge name="two">',
            "+        <queue-name>q</queue-name>",
            "+        <filter string=\"a &gt; 'b' AND c = &quot;d&quot;\"/>",
            '+        <discovery-group-ref discovery-group-name="found"/>',
            "+      </bridge>",
        ],
    ),
    (
        "connection-router", "r",
        {"policy": "CONSISTENT_HASH_MODULO", "policy.MODULO": "2", "cache": "true", "pool.static-connectors": "other"},
        [
            "+    <connection-routers>",
            '+      <connection-router name="r">',
            '+        <policy name="CONSISTENT_HASH_MODULO">',
            '+          <property key="MODULO" value="2"/>',
            "+        </policy>",
            "+        <cache/>",
            "+        <pool>",
            "+          <static-connectors>",
            "+            <connector-ref>other</connector-ref>",
            "+          </static-connectors>",
            "+        </pool>",
            "+      </connection-router>",
            "+    </connection-routers>",
        ],
    ),
    (
        "acceptor", "second", {"host": "::1", "port": "5", "protocols": ["CORE", "STOMP"]},
        ['+      <acceptor name="second">tcp://[::1]:5?protocols=CORE,STOMP</acceptor>'],
    ),
    (
        "connector", "third", {"host": "far", "tcpNoDelay": "false"},
        ['+      <connector name="third">tcp://far:61616?tcpNoDelay=false</connector>'],
    ),
    (
        "divert", "d", {"address": "a", "forwarding-address": "b", "exclusive": "true"},
        [
            "-    <diverts/>",
            "+    <diverts>",
            '+      <divert name="d">',
            "+        <address>a</address>",
            "+        <forwarding-address>b</forwarding-address>",
            "+        <exclusive>true</exclusive>",
            "+      </divert>",
            "+    </diverts>",
        ],
    ),
    (
        "address-setting", "a.#", {"max-size-bytes": "10M"},
        [
            '+\t<address-setting match="a.#">',
            "+\t\t<max-size-bytes>10M</max-size-bytes>",
            "+\t</address-setting>",
        ],
    ),
    (
        "security-setting", "a.#", {"send": ["x", "y"], "consume": "z"},
        [
            '+      <security-setting match="a.#">',
            '+        <permission type="send" roles="x,y"/>',
            '+        <permission type="consume" roles="z"/>',
            "+      </security-setting>",
        ],
    ),
]  # fmt: skip

CHANGED: list[tuple[str, str, dict[str, Value], list[str]]] = [
    (
        "broadcast-group", "announce", {"group-port": "1", "broadcast-period": "500"},
        [
            "-        <group-port>9876</group-port>",
            "+        <group-port>1</group-port>",
            "+        <broadcast-period>500</broadcast-period>",
        ],
    ),
    (
        "discovery-group", "found", {"group-port": "1", "refresh-timeout": "500"},
        [
            '-      <discovery-group name="found"><group-address>231.7.7.7</group-address>'
            "<group-port>9</group-port></discovery-group>",
            '+      <discovery-group name="found"><group-address>231.7.7.7</group-address>'
            "<group-port>1</group-port><refresh-timeout>500</refresh-timeout></discovery-group>",
        ],
    ),
    (
        "cluster-connection", "cluster", {"discovery-group-ref": None, "static-connectors": ["other"]},
        [
            "+        <static-connectors>",
            "+          <connector-ref>other</connector-ref>",
            "+        </static-connectors>",
            '-        <discovery-group-ref discovery-group-name="found"/>',
        ],
    ),
    (
        "bridge", "one", {"queue-name": "others", "static-connectors": ["self"], "concurrency": "2"},
        [
            "-        <queue-name>orders</queue-name> <!-- important -->",
            "+        <queue-name>others</queue-name> <!-- important -->",
            "+        <concurrency>2</concurrency>",
            "-          <connector-ref>other</connector-ref>",
            "+          <connector-ref>self</connector-ref>",
        ],
    ),
    (
        "acceptor", "artemis", {"connectionsAllowed": None, "host": "0.0.0.0", "protocols": "CORE"},
        [
            "-                >tcp://127.0.0.1:61616?protocols=CORE,STOMP;connectionsAllowed=7</acceptor>",
            "+                >tcp://0.0.0.0:61616?protocols=CORE</acceptor>",
        ],
    ),
    (
        "connector", "other", {"port": "1", "tcpSendBufferSize": "5"},
        [
            '-      <connector name="other">tcp://127.0.0.1:61617?tcpNoDelay=true&amp;tcpSendBufferSize=1024</connector>',
            '+      <connector name="other">tcp://127.0.0.1:1?tcpNoDelay=true&amp;tcpSendBufferSize=5</connector>',
        ],
    ),
    (
        "address-setting", "#", {"max-delivery-attempts": "3"},
        [
            "-\t\t<max-delivery-attempts>10<!-- as in the old broker --></max-delivery-attempts>",
            "+\t\t<max-delivery-attempts>3<!-- as in the old broker --></max-delivery-attempts>",
        ],
    ),
    (
        "security-setting", "#", {"send": ["amq", "x"], "consume": ["amq"]},
        [
            '-      <security-setting match="#"><permission type="send" roles="amq"/></security-setting>',
            '+      <security-setting match="#"><permission type="send" roles="amq,x"/>'
            '<permission type="consume" roles="amq"/></security-setting>',
        ],
    ),
]  # fmt: skip

REMOVED: list[tuple[str, str, list[str]]] = [
    ("connector", "other", ['-      <connector name="other">tcp://127.0.0.1:61617?tcpNoDelay=true&amp;'
                            "tcpSendBufferSize=1024</connector>"]),
    (
        "broadcast-group", "announce",
        [
            "-    <broadcast-groups>",
            '-      <broadcast-group name="announce">',
            "-        <group-address>231.7.7.7</group-address>",
            "-        <group-port>9876</group-port>",
            "-        <connector-ref>self</connector-ref>",
            "-      </broadcast-group>",
            "-    </broadcast-groups>",
        ],
    ),
    (
        "bridge", "one",
        [
            '-      <bridge name="one">',
            "-        <queue-name>orders</queue-name> <!-- important -->",
            "-        <user>u</user><password>p</password>",
            "-        <static-connectors>",
            "-          <connector-ref>other</connector-ref>",
            "-        </static-connectors>",
            "-      </bridge>",
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize("kind, name, values, expected", ADDED, ids=[each[0] for each in ADDED])
def test_an_added_element_stands_behind_those_of_its_kind(
    tmp_path: Path, kind: str, name: str, values: dict[str, Value], expected: list[str]
) -> None:
    assert changed(tmp_path, "add", kind, name, values) == expected


@pytest.mark.parametrize("kind, name, values, expected", CHANGED, ids=[each[0] for each in CHANGED])
def test_a_change_touches_nothing_else(
    tmp_path: Path, kind: str, name: str, values: dict[str, Value], expected: list[str]
) -> None:
    assert changed(tmp_path, "change", kind, name, values) == expected


@pytest.mark.parametrize("kind, name, expected", REMOVED, ids=[each[0] for each in REMOVED])
def test_a_removed_element_takes_its_lines_along_and_leaves_comments(
    tmp_path: Path, kind: str, name: str, expected: list[str]
) -> None:
    assert changed(tmp_path, "remove", kind, name) == expected


@pytest.mark.parametrize("kind, name, values, expected", ADDED, ids=[each[0] for each in ADDED])
def test_what_was_added_is_removed_without_a_trace(
    tmp_path: Path, kind: str, name: str, values: dict[str, Value], expected: list[str]
) -> None:
    before = texts(tmp_path)
    added = before.changed([Change("add", kind, name, values)])
    after = added.changed([Change("remove", kind, name)])
    left = {"divert": ["-    <diverts/>"]}.get(kind, [])  # a section that holds nothing goes
    assert lines(before.main.decode(), after.main.decode()) == left


@pytest.mark.parametrize("kind, name, values, expected", ADDED, ids=[each[0] for each in ADDED])
def test_an_undo_gives_every_byte_back(
    tmp_path: Path, kind: str, name: str, values: dict[str, Value], expected: list[str]
) -> None:
    before = texts(tmp_path)
    after = before.changed([Change("add", kind, name, values)])
    assert after.taken_back(before.places(after)).main == before.main


def test_windows_line_ends_stay(tmp_path: Path) -> None:
    text = BROKER.replace("\n", "\r\n")
    before = texts(tmp_path, text)
    after = before.changed([Change("add", "connector", "x", {"host": "h"})]).main
    assert after.count(b"\r\n") == after.count(b"\n") == text.count("\n") + 1


def test_other_encodings_stay(tmp_path: Path) -> None:
    text = BROKER.replace("UTF-8", "ISO-8859-1").replace("of the shop", "des Geschäfts")
    path = tmp_path / "broker.xml"
    path.write_bytes(text.encode("latin-1"))
    from atalanta.config.changes.texts import Texts

    before = Texts.read(path)
    after = before.changed([Change("add", "divert", "tür", {"address": "a", "forwarding-address": "λ"})]).main
    assert "<!-- the node des Geschäfts -->".encode("latin-1") in after
    assert 'name="tür"'.encode("latin-1") in after
    assert b"<forwarding-address>&#955;</forwarding-address>" in after


def test_a_byte_order_mark_and_prefixes_stay(tmp_path: Path) -> None:
    text = (
        '<c:configuration xmlns:c="urn:activemq" xmlns:k="urn:activemq:core"><k:core>'
        '<k:connectors><k:connector name="a">tcp://h:1</k:connector></k:connectors></k:core></c:configuration>'
    )
    path = tmp_path / "broker.xml"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    from atalanta.config.changes.texts import Texts

    after = Texts.read(path).changed([Change("add", "connector", "b", {"host": "h"})]).main
    assert after.startswith(b"\xef\xbb\xbf<c:configuration")
    assert b'</k:connector><k:connector name="b">tcp://h:61616</k:connector></k:connectors>' in after


def test_a_value_in_cdata_and_an_old_name_are_changed_where_they_stand(tmp_path: Path) -> None:
    text = BROKER.replace("<queue-name>orders<", "<queue-name>\n  <![CDATA[orders]]>\n<")
    assert "+  new" in changed(tmp_path, "change", "bridge", "one", {"queue-name": "new"}, text)


NETWORKS = """# of this node
zone = "north"  # where it stands

[networks.one]
uri = "static:(tcp://a:1)"
# both ways
duplex = true

[ha]
min-in-sync = 1
"""


def test_network_connectors_are_tables_of_atalanta_toml(tmp_path: Path) -> None:
    before = texts(tmp_path, own=NETWORKS)
    values: dict[str, Value] = {"uri": "static:(tcp://b:1)", "networkTTL": "3"}
    added = before.changed([Change("add", "network-connector", "two", values)])
    assert lines(NETWORKS, (added.own or b"").decode()) == [
        "+[networks.two]", '+uri = "static:(tcp://b:1)"', "+networkTTL = 3", "+",
    ]  # fmt: skip
    other = before.changed([Change("change", "network-connector", "one", {"duplex": "false"})])
    assert lines(NETWORKS, (other.own or b"").decode()) == ["-duplex = true", "+duplex = false"]
    gone = before.changed([Change("remove", "network-connector", "one")])
    assert b"networks" not in (gone.own or b"") and b"zone" in (gone.own or b"") and before.main == gone.main


def test_a_file_without_networks_gets_them(tmp_path: Path) -> None:
    before = texts(tmp_path)
    values: dict[str, Value] = {"uri": "static:(tcp://b:1)", "duplex": "true"}
    added = before.changed([Change("add", "network-connector", "a.b", values)])
    assert added.own == b'[networks."a.b"]\nuri = "static:(tcp://b:1)"\nduplex = true\n'


REFUSED: list[tuple[str, str, str, dict[str, Value], str]] = [
    ("add", "bridge", "one", {"queue-name": "q"}, "there is a bridge 'one' already (broker.xml, line 35)"),
    ("add", "bridge", "b", {}, "bridge 'b' needs queue-name"),
    ("change", "bridge", "none", {"queue-name": "q"}, "there is no bridge 'none' in broker.xml"),
    ("change", "bridge", "one", {"queue-name": None}, "bridge 'one' needs queue-name"),
    ("change", "bridge", "one", {"name": "two"}, "a name does not change"),
    ("change", "bridge", "one", {"user": "x"}, "user is not changed by management"),
    ("change", "bridge", "one", {"password": "x"}, "password is not changed by management"),
    ("add", "bridge", "b", {"queue-name": "q", "transformer": "os.system"}, "transformer is not changed by management"),
    ("change", "acceptor", "artemis", {"keyStorePath": "/etc/passwd"}, "keyStorePath is not changed by management"),
    ("add", "acceptor", "b", {"host": "h", "trustStorePassword": "x"}, "trustStorePassword is not changed by"),
    ("change", "discovery-group", "found", {"jgroups-file": "/etc/x"}, "jgroups-file is not changed by management"),
    ("change", "bridge", "one", {"journal-directory": "/tmp"}, "there is no parameter 'journal-directory'"),
    ("add", "acceptor", "b", {"host": "h/../x"}, "'h/../x' is not a host"),
    ("add", "acceptor", "b", {"host": "h?keyStorePath=x"}, "is not a host"),
    ("add", "acceptor", "b", {"host": "h", "port": "1?a=b"}, "is not a number"),
    ("add", "core", "b", {}, "'core' is not changed by management"),
    ("add", "journal-directory", "b", {}, "is not changed by management"),
    ("add", "bridge", "../../etc/passwd", {"queue-name": "q"}, "cannot be the name of a bridge"),
    ("add", "divert", "a\\b", {"address": "a", "forwarding-address": "b"}, "cannot be the name of a divert"),
    ("change", "network-connector", "one", {"duplex": "true"}, "there is no network-connector 'one'"),
    ("add", "network-connector", "n", {"uri": "static:(ssl://h:1?keyStorePath=/etc/x)"}, "names a file or a password"),
    ("add", "network-connector", "n", {"uri": "static:(tcp://h:1)", "userName": "x"}, "userName is not changed by"),
]  # fmt: skip


@pytest.mark.parametrize("action, kind, name, values, why", REFUSED)
def test_what_is_refused_names_the_place(
    tmp_path: Path, action: str, kind: str, name: str, values: dict[str, Value], why: str
) -> None:
    with pytest.raises(ChangeRefused) as refused:
        texts(tmp_path).changed([Change(action, kind, name, values)])
    assert why in str(refused.value)


def test_values_are_texts_and_never_elements(tmp_path: Path) -> None:
    evil = "</queue-name><user>root</user><!--<![CDATA[&lol;"
    after = texts(tmp_path).changed([Change("change", "bridge", "one", {"queue-name": evil, "filter": '"/><x a="'})])
    shown = after.main.decode()
    assert "<queue-name>&lt;/queue-name&gt;&lt;user&gt;root&lt;/user&gt;&lt;!--&lt;![CDATA[&amp;lol;<" in shown
    assert '<filter string="&quot;/&gt;&lt;x a=&quot;"/>' in shown
    assert shown.count("<user>") == 1
    after = texts(tmp_path).changed([Change("change", "acceptor", "artemis", {"anycastPrefix": "a;keyStorePath=x&b"})])
    assert "anycastPrefix=a%3BkeyStorePath%3Dx%26b" in after.main.decode()


def test_a_placeholder_is_shown_and_not_changed(tmp_path: Path) -> None:
    text = BROKER.replace(">orders<", ">${ORDERS:orders}<")
    for action in ("change", "remove"):
        with pytest.raises(ChangeRefused) as refused:
            changed(tmp_path, action, "bridge", "one", {"concurrency": "2"} if action == "change" else {}, text)
        assert "bridge 'one' has a placeholder ${…}" in str(refused.value)
        assert "(broker.xml, line 35): change it there" in str(refused.value)


def test_what_an_included_file_has_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / "more.xml").write_text('<bridges xmlns="urn:activemq:core">\n<bridge name="one"/></bridges>')
    start, end = BROKER.index("<bridges>"), BROKER.index("</bridges>") + len("</bridges>")
    include = '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="more.xml"/>'
    text = BROKER[:start] + include + BROKER[end:]
    for action, name in (("change", "one"), ("remove", "one"), ("add", "two")):
        with pytest.raises(ChangeRefused) as refused:
            changed(tmp_path, action, "bridge", name, {"queue-name": "q"} if action != "remove" else {}, text)
        assert "comes from the included more.xml, line" in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + BROKER.partition("?>")[2].lstrip(),
        BROKER.replace("shop &amp; stock", "&lol;"),
        BROKER.replace("</core>", ""),
    ],
)
def test_a_file_with_entities_or_faults_is_not_changed(tmp_path: Path, text: str) -> None:
    with pytest.raises(ChangeRefused):
        changed(tmp_path, "remove", "bridge", "one", text=text)


def test_a_large_file_is_not_changed(tmp_path: Path) -> None:
    with pytest.raises(ChangeRefused, match="larger than"):
        texts(tmp_path, BROKER + " " * (2 << 20))


def test_the_old_form_with_parameters_is_not_changed(tmp_path: Path) -> None:
    old = '<connector name="self"><factory-class>Netty</factory-class><param key="host" value="h"/></connector>'
    text = BROKER.replace('<connector name="self">tcp://127.0.0.1:61616</connector>', old)
    with pytest.raises(ChangeRefused, match="factory-class"):
        changed(tmp_path, "change", "connector", "self", {"port": "1"}, text)
