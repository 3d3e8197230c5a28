"""A setting that management changes while another process takes the store: it is refused, not confirmed and lost."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from atalanta.app.configuration_files import change_settings
from atalanta.app.storage import epoch_storage
from atalanta.config.configuration import Configuration
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.settings.settings_change import ADDRESS_SETTING, SettingsChange
from atalanta.runtime.lifecycle.reloader import ReloadRefused
from tests.runtime.ha.store_rig import store, taken

CHANGE = SettingsChange(ADDRESS_SETTING, "orders", {"max-size-bytes": "1000"})


def test_a_setting_is_changed_by_the_holder_and_refused_after_a_takeover(tmp_path: Path) -> None:
    configuration = Configuration(tmp_path / "broker.xml", tmp_path, BrokerConfig())
    held = taken(store(tmp_path))
    storage = epoch_storage(configuration, uuid.uuid4(), held)
    assert "orders" in str(change_settings(configuration, storage, CHANGE).address_settings)
    successor = taken(store(tmp_path))
    with pytest.raises(ReloadRefused, match="another process has taken epoch 2"):
        change_settings(configuration, storage, CHANGE)
    assert "orders" in (successor.journal / "management-settings.xml").read_text()
    held.abandon()
    successor.stop("released")
