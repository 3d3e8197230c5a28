"""The files of a configuration: what broker.xml includes, links and pipes in their place, and what is no XML."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.problems import ConfigError
from atalanta.config.users.users import read_security
from atalanta.config.users.users_file import UserFiles, UsersError
from atalanta.config.xml.convert import convert_file
from tests.config.core_xml import problems, read


def test_includes(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts/settings.xml").write_text(
        '<address-settings xmlns="urn:activemq:core">\n'
        '<address-setting match="#"><max-delivery-attempts>7</max-delivery-attempts>\n'
        "<bogus/></address-setting></address-settings>"
    )
    include = '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="parts/settings.xml"/>'
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, include)
    [problem] = caught.value.problems
    assert (problem.file, problem.line) == (str(tmp_path / "parts/settings.xml"), 3)


@pytest.mark.parametrize(
    "href", ["/etc/passwd", "../x.xml", "file:///etc/passwd", "http://a/b", ""]
)
def test_includes_stay_in_the_folder(tmp_path: Path, href: str) -> None:
    include = f'<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="{href}"/>'
    folder = tmp_path / "inner"
    [(line, text, _)] = problems_below(folder, include)
    assert line == 1
    assert "outside the folder" in text or "local file" in text


def problems_below(folder: Path, core: str) -> list[tuple[int, str, str]]:
    folder.mkdir()
    return problems(folder, core)


def test_a_namespace_may_be_any_text(tmp_path: Path) -> None:
    """Where a relative one follows lxml lets it pass, and its own QName refuses it (found by fuzzing)."""
    path = tmp_path / "broker.xml"
    path.write_text("<configuration xmlns='${a:b}'><core xmlns='p'><nmae>a</nmae></core></configuration>")
    with pytest.raises(ConfigError, match="unknown element <nmae>"):
        read_broker_xml(path)


def test_an_include_of_itself_is_told_once(tmp_path: Path) -> None:
    """Its whole text ten times over took 10 MB for 6 KiB (found by fuzzing)."""
    include = '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="broker.xml"/>'
    assert [found[1] for found in problems(tmp_path, include * 3)] == ["broker.xml includes itself"] * 3


def test_a_circle_of_includes_is_told_where_it_closes(tmp_path: Path) -> None:
    back = '<core><xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="broker.xml"/></core>'
    (tmp_path / "part.xml").write_text(back)
    include = '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="part.xml"/>'
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, include)
    told = [(each.file, each.text) for each in caught.value.problems]
    assert (str(tmp_path / "part.xml"), "broker.xml includes itself") in told


def test_an_include_of_itself_by_another_name(tmp_path: Path) -> None:
    (tmp_path / "other.xml").symlink_to("broker.xml")
    include = '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="other.xml"/>'
    assert [found[1] for found in problems(tmp_path, include)] == ["broker.xml includes itself"]


def test_links_that_lead_nowhere(tmp_path: Path) -> None:
    """A circle of symbolic links ended with a traceback."""
    (tmp_path / "here.xml").symlink_to("there.xml")
    (tmp_path / "there.xml").symlink_to("here.xml")
    include = '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="here.xml"/>'
    with pytest.raises(ConfigError, match="here.xml:.* cannot be read"):
        read(tmp_path, include)
    with pytest.raises(ConfigError, match="here.xml:.* cannot be read"):
        read_broker_xml(tmp_path / "here.xml")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """As a file that is included, the line is told; and as the first file, of either kind."""
    os.mkfifo(tmp_path / "pipe.xml")
    include = '\n<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="pipe.xml"/>'
    [(line, text, _)] = problems(tmp_path, include)
    assert line == 2
    assert text == (
        f"the included {tmp_path / 'pipe.xml'}: cannot be read: is a named pipe, not a regular file"
    )
    with pytest.raises(ConfigError, match=r"pipe\.xml: cannot be read: is a named pipe"):
        read_broker_xml(tmp_path / "pipe.xml")
    with pytest.raises(ConfigError, match=r"pipe\.xml: cannot be read: is a named pipe"):
        convert_file(tmp_path / "pipe.xml", {})


@pytest.mark.parametrize("name", ["artemis-users.properties", "artemis-roles.properties", "login.config"])
def test_pipes_beside_it(tmp_path: Path, name: str) -> None:
    (tmp_path / "artemis-users.properties").write_text("anna = secret\n")
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    configuration = read(tmp_path, "<security-enabled>true</security-enabled>")
    with pytest.raises(ConfigError, match=rf"{name}: cannot be read: is a named pipe"):
        read_security(configuration)
    if name != "login.config":
        with pytest.raises(UsersError, match="is a named pipe"):
            UserFiles(tmp_path)


def test_a_file_may_be_included_in_two_places(tmp_path: Path) -> None:
    (tmp_path / "none.xml").write_text("<diverts/>")
    include = '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="none.xml"/>'
    read(tmp_path, include + include)


def test_many_includes_of_a_large_file_are_not_all_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atalanta.config.xml.tree.ALL_BYTES_MAX", 10_000)
    (tmp_path / "large.xml").write_text("<diverts><!--" + "x" * 4_000 + "--></diverts>")
    include = '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="large.xml"/>'
    assert any("files together are larger than" in found[1] for found in problems(tmp_path, include * 3))


def test_entities_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "broker.xml"
    path.write_text(
        '<!DOCTYPE c [<!ENTITY x SYSTEM "file:///etc/passwd">]>\n'
        "<configuration><core><name>&x;</name></core></configuration>"
    )
    with pytest.raises(ConfigError) as caught:
        read_broker_xml(path)
    assert "DOCTYPE" in str(caught.value)


def test_broken_and_missing_files(tmp_path: Path) -> None:
    path = tmp_path / "broker.xml"
    with pytest.raises(ConfigError) as caught:
        read_broker_xml(path)
    assert "cannot be read" in str(caught.value)
    path.write_text("<configuration>\n<core>\n</configuration>")
    with pytest.raises(ConfigError) as caught:
        read_broker_xml(path)
    assert caught.value.problems[0].line == 3
    path.write_text("<beans/>")
    with pytest.raises(ConfigError) as caught:
        read_broker_xml(path)
    assert "root element is <beans>" in str(caught.value)
