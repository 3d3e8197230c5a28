"""`atalanta check` of who may hear of the demand: every such user can come in as a bridge of a network."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.instance.check_rig import call, told, write

ACTIVEMQ_XML = """<beans xmlns="http://www.springframework.org/schema/beans">
  <broker xmlns="http://activemq.apache.org/schema/core" brokerName="{name}" dataDirectory="${{activemq.data}}">
    {networks}
    <plugins>
      <simpleAuthenticationPlugin {anonymous}>
        <users>
          <authenticationUser username="system" password="manager" groups="users,admins"/>
          <authenticationUser username="north" password="bridge" groups="bridges"/>
          {users}
        </users>
      </simpleAuthenticationPlugin>
      <authorizationPlugin><map><authorizationMap><authorizationEntries>
        <authorizationEntry queue=">" read="admins" write="admins" admin="admins"/>
        <authorizationEntry queue="USERS.>" read="users" write="users" admin="users"/>
        <authorizationEntry topic=">" read="admins" write="admins" admin="admins"/>
        {entries}
      </authorizationEntries></authorizationMap></map></authorizationPlugin>
    </plugins>
    <transportConnectors><transportConnector name="c" uri="{scheme}://127.0.0.1:{port}"/></transportConnectors>
  </broker>
</beans>
"""
USERS = '<authenticationUser username="user" password="password" groups="users"/>'
GUEST = '<authenticationUser username="guest" password="password" groups="guests"/>'
ENTRY = '<authorizationEntry topic="ActiveMQ.Advisory.>" read="{0}" write="{0}" admin="{0}"/>'
EVERYBODYS = ENTRY.format("guests,users")
CONNECTOR = """<networkConnectors><networkConnector name="to-south" uri="static:(tcp://127.0.0.1:61617)"
  userName="north" password="bridge"/></networkConnectors>"""
BROKER_XML = """<acceptors><acceptor name="a">tcp://127.0.0.1:61617{0}</acceptor></acceptors>
<security-settings><security-setting match="#">
{1}<permission type="manage" roles="amq"/></security-setting>{2}</security-settings>"""
ALL = "".join(
    f'<permission type="{each}" roles="amq,apps"/>' for each in ("send", "consume", "createNonDurableQueue")
)
OWN = '<security-setting match="ActiveMQ.Advisory.#"><permission type="consume" roles="apps"/></security-setting>'


def classic(
    folder: Path, entries: str = EVERYBODYS, name: str = "south", port: int = 61617, networks: str = "",
    users: str = USERS + GUEST, anonymous: str = "", scheme: str = "tcp",
) -> Path:  # fmt: skip
    path = folder / name / "conf" / "activemq.xml"
    path.parent.mkdir(parents=True)
    values = {"name": name, "port": port, "networks": networks, "users": users, "anonymous": anonymous}
    path.write_text(ACTIVEMQ_XML.format(entries=entries, scheme=scheme, **values))
    return path


def artemis(folder: Path, acceptor: str = "", own: str = "", users: tuple[str, ...] = ("shop", "till")) -> Path:
    path = write(folder, "south", more="")
    text = path.read_text()
    begin, end = text.index("<acceptors>"), text.index("</acceptors>") + len("</acceptors>")
    path.write_text(text[:begin] + BROKER_XML.format(acceptor, ALL, own) + text[end:])
    (path.parent / "artemis-users.properties").write_text("admin = x\n" + "".join(f"{each} = x\n" for each in users))
    (path.parent / "artemis-roles.properties").write_text(f"amq = admin\napps = {','.join(users)}\n")
    return path


def warned(*paths: Path) -> list[str]:
    return [each for each in told(call(*paths), "warning") if "ActiveMQ.Advisory.Consumer:" in each]


def test_the_usual_entry_of_classic_lets_everybody_in_as_a_bridge(tmp_path: Path) -> None:
    path = classic(tmp_path)
    (found,) = [each for each in call(path) if "ActiveMQ.Advisory.Consumer:" in each["text"]]
    assert found["level"] == "warning" and found["file"] == str(path)
    assert found["text"] == (
        "users 'user', 'guest' may consume ActiveMQ.Advisory.Consumer: each can come in as a bridge of a network, bring"
        " message ids that count for all bridges, and temporary destinations"
    )
    assert "read" in found["hint"] and "users of bridges" in found["hint"]


@pytest.mark.parametrize(
    ("entries", "more"),
    [
        ("", {}),
        (ENTRY.format("admins"), {}),
        (ENTRY.format("bridges"), {}),
        (ENTRY.format("bridges,admins"), {}),
        (EVERYBODYS, {"scheme": "stomp"}),  # no way in for a bridge
    ],
)
def test_files_without_the_finding(tmp_path: Path, entries: str, more: dict[str, str]) -> None:
    assert warned(classic(tmp_path, entries, **more)) == []  # type: ignore[arg-type]


def test_whoever_may_log_in_without_a_password_is_a_user(tmp_path: Path) -> None:
    entries = ENTRY.format("*")
    anonymous = 'anonymousAccessAllowed="true" anonymousUser="nobody" anonymousGroup="guests"'
    (text,) = warned(classic(tmp_path, entries, users="", anonymous=anonymous))
    assert "'north', 'nobody'" in text


def test_the_users_of_known_bridges_are_no_finding(tmp_path: Path) -> None:
    """With the file of the other broker one user who is none of a bridge is enough."""
    north = classic(tmp_path, ENTRY.format("bridges"), "north", 61616, CONNECTOR)
    assert warned(north, classic(tmp_path, ENTRY.format("bridges"))) == []
    (text,) = warned(north, classic(tmp_path / "other", ENTRY.format("bridges,users")))
    assert text.startswith("users 'user' may consume")


def test_a_long_list_of_users_is_cut(tmp_path: Path) -> None:
    many = "".join(
        f'<authenticationUser username="u{number}" password="p" groups="users"/>' for number in range(20)
    )
    (text,) = warned(classic(tmp_path, users=many))
    assert text.startswith("users 'u0', 'u1', 'u2', 'u3', 'u4' and 15 more may")


def test_a_broker_xml_is_a_finding_if_there_are_bridges_or_an_entry_of_its_own(tmp_path: Path) -> None:
    """All rights on `#` for applications are usual, and mostly there are no bridges."""
    assert warned(artemis(tmp_path / "1")) == []
    (text,) = warned(artemis(tmp_path / "2", own=OWN))
    assert text.startswith("users 'shop', 'till' may consume")
    assert warned(artemis(tmp_path / "3", own=OWN, users=("bridge",))) == []
    assert warned(artemis(tmp_path / "4", "?protocols=CORE,STOMP", own=OWN)) == []
    north = classic(tmp_path, ENTRY.format("admins"), "north", 61616, CONNECTOR)
    (text,) = warned(north, artemis(tmp_path / "5"))
    assert text.startswith("users 'shop', 'till' may consume")
