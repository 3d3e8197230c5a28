"""login.config beside the broker.xml: followed where it can be, refused where it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.problems import ConfigError
from atalanta.config.users import read_security

PACKAGE = "org.apache.activemq.artemis.spi.core.security.jaas"
AS_CREATED = f"""/*
 * a licence; with "quotes" and {{ braces }}
 */
activemq {{
   {PACKAGE}.PropertiesLoginModule required   // the usual
       debug=false
       reload=true
       org.apache.activemq.jaas.properties.user="people.properties"
       org.apache.activemq.jaas.properties.role="groups.properties";
}};
"""


def configure(folder: Path, login: str) -> Path:
    (folder / "broker.xml").write_text("<configuration><core/></configuration>")
    (folder / "login.config").write_text(login)
    (folder / "people.properties").write_text("anna = secret\n")
    (folder / "groups.properties").write_text("amq = anna\n")
    return folder / "broker.xml"


def test_the_files_it_names_are_read(tmp_path: Path) -> None:
    configuration = read_broker_xml(configure(tmp_path, AS_CREATED))
    anna = read_security(configuration).authenticate("anna", "secret")
    assert anna is not None and anna.roles == ("amq",)
    assert len(configuration.warnings) == 1  # there is no acceptor


def test_guests_are_not_let_in_and_this_is_said(tmp_path: Path) -> None:
    guest = f"   {PACKAGE}.GuestLoginModule sufficient user=x;\n}};"
    configuration = read_broker_xml(configure(tmp_path, AS_CREATED.replace("};", guest)))
    security = read_security(configuration)
    assert security.authenticate(None, None) is None
    assert "login.config:10: GuestLoginModule is not supported" in configuration.warnings[-1]


@pytest.mark.parametrize("module", ["TextFileCertificateLoginModule", "LDAPLoginModule"])
def test_what_cannot_be_served_keeps_the_node_from_starting(tmp_path: Path, module: str) -> None:
    text = AS_CREATED.replace("PropertiesLoginModule", module)
    with pytest.raises(ConfigError) as caught:
        read_security(read_broker_xml(configure(tmp_path, text)))
    [problem] = caught.value.problems
    assert problem.line == 5 and f"login module {module} is not supported" in problem.text
    assert "certificates" in str(problem)


@pytest.mark.parametrize("text", ["", "activemq {", "}};;{{", '"', "a = b; c {x", "/* open"])
def test_whatever_stands_there(tmp_path: Path, text: str) -> None:
    (tmp_path / "artemis-users.properties").write_text("anna = secret\n")
    configuration = read_broker_xml(configure(tmp_path, text))
    assert read_security(configuration).authenticate("anna", "secret") is not None
