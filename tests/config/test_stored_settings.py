"""The file of the settings that management made: what it holds, and what a damaged one is answered with."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.config.configuration import Configuration
from atalanta.config.problems import ConfigError
from atalanta.config.stored_settings import STORED_SETTINGS_NAME, StoredSettingsFile
from atalanta.kernel.settings.broker_config import StoredSettings
from atalanta.kernel.settings.settings_change import (
    ADDRESS_SETTING,
    SECURITY_SETTING,
    SettingsChange,
)


def configuration() -> Configuration:
    return Configuration(Path("broker.xml"), Path())


def stored_in(folder: Path) -> StoredSettingsFile:
    return StoredSettingsFile(folder / STORED_SETTINGS_NAME)


def read(folder: Path) -> StoredSettings:
    found = configuration()
    stored_in(folder).read(found)
    return found.broker.stored


def put(folder: Path, element: str, match: str, **values: str) -> StoredSettings:
    texts = {name.replace("_", "-"): text for name, text in values.items()}
    return stored_in(folder).change(configuration(), SettingsChange(element, match, texts))


def test_each_change_keeps_the_others_and_is_read_back(tmp_path: Path) -> None:
    assert read(tmp_path) == StoredSettings()
    put(tmp_path, ADDRESS_SETTING, "a <&> \"é'", max_delivery_attempts="3", dead_letter_address="")
    put(tmp_path, ADDRESS_SETTING, "#", max_size_bytes="10M")
    put(tmp_path, ADDRESS_SETTING, "#", max_size_bytes="20M")
    put(tmp_path, SECURITY_SETTING, "#", send="amq,ops", manage="amq")
    last = put(tmp_path, SECURITY_SETTING, "closed")
    found = read(tmp_path)
    assert found == last
    assert {each.match: each.values for each in found.address_settings} == {
        "a <&> \"é'": {"max_delivery_attempts": 3, "dead_letter_address": None},
        "#": {"max_size_bytes": 20 << 20},
    }
    assert {each.match: each.permissions for each in found.security_rules} == {
        "#": {"send": ("amq", "ops"), "manage": ("amq",)},
        "closed": {},
    }
    stored_in(tmp_path).change(configuration(), SettingsChange(SECURITY_SETTING, "#", None))
    assert [each.match for each in read(tmp_path).security_rules] == ["closed"]
    assert [path.name for path in tmp_path.iterdir()] == [STORED_SETTINGS_NAME]


@pytest.mark.parametrize(
    ("damage", "line", "text"),
    [
        (lambda text: text[: text.index("</security-setting>")], 7, "not well-formed XML"),
        (lambda text: "", 1, "not well-formed XML"),
        (lambda text: text.replace("#", "a#b"), 5, "a#b"),
        (lambda text: text.replace('"send"', '"sned"'), 6, "unknown permission 'sned'"),
        (lambda text: text.replace("core", "else"), 3, "the root element is <else>"),
        (lambda text: text.replace("security-settings", "securities"), 4, "unknown element <securities>"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_named_with_line_and_remedy(
    tmp_path: Path, damage: object, line: int, text: str
) -> None:
    put(tmp_path, SECURITY_SETTING, "#", send="amq")
    path = tmp_path / STORED_SETTINGS_NAME
    assert callable(damage)
    path.write_text(damage(path.read_text()))
    before = path.read_bytes()
    for use in (read, lambda folder: put(folder, ADDRESS_SETTING, "b", max_size_bytes="1")):
        with pytest.raises(ConfigError) as found:
            use(tmp_path)
        told = str(found.value)
        assert f"{path}:{line}: " in told and text in told, told
        assert "repair it, or move the file away" in told
    assert path.read_bytes() == before


def test_a_file_that_cannot_be_read_is_not_a_missing_one(tmp_path: Path) -> None:
    (tmp_path / STORED_SETTINGS_NAME).mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        read(tmp_path)


def test_a_change_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    put(tmp_path, ADDRESS_SETTING, "a", max_size_bytes="1")
    for match, text in (("b\x01", "cannot|XML"), ("b\ud800", "surrogates")):
        with pytest.raises(ConfigError, match=text):
            put(tmp_path, ADDRESS_SETTING, match)
    (tmp_path / f"{STORED_SETTINGS_NAME}.new").mkdir()
    with pytest.raises(ConfigError, match=r"settings\.xml: cannot be written: Is a directory"):
        put(tmp_path, ADDRESS_SETTING, "b")
    assert [each.match for each in read(tmp_path).address_settings] == ["a"]
