"""The section <broker-plugins>."""

from __future__ import annotations

from pathlib import Path

from atalanta.kernel.settings.notification_options import PLUGIN, NotificationOptions
from tests.config.sections.section_rig import read


def test_the_notification_plugin_is_known_and_others_are_listed(tmp_path: Path) -> None:
    configuration = read(
        tmp_path,
        f"""<broker-plugins>
              <broker-plugin class-name="{PLUGIN}">
                <property key="SEND_CONNECTION_NOTIFICATIONS" value="true"/>
                <property key="SEND_EXPIRED_NOTIFICATIONS" value="TRUE"/>
                <property key="SEND_ADDRESS_NOTIFICATIONS" value="false"/>
                <property key="SEND_DELIVERED_NOTIFICATIONS" value="true"/>
              </broker-plugin>
              <broker-plugin class-name="com.example.Mine"/>
            </broker-plugins>""",
    )
    wanted = NotificationOptions(
        connections=True, addresses=False, expired=True, delivered=True
    )
    assert configuration.broker.notifications == wanted
    listed = " ".join(str(one) for one in configuration.unsupported)
    assert "com.example.Mine" in listed and "SEND_" not in listed
