"""Large messages of CORE clients: one frame each, within what the client accepts."""

from __future__ import annotations

import pytest

from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.message.codec import text_body
from atalanta.sim.world.large_files import SimLargeFiles
from atalanta.wire.openwire.options import WireFormatOptions
from tests.wire.core.server.large_rig import files, send_large
from tests.wire.openwire.server.openwire_rig import OpenWireClient, OpenWireServer

TEXT = "žluťoučký kůň 😀 " * 20_000


@pytest.mark.parametrize("fits", [True, False])
def test_a_body_is_read_only_if_the_client_takes_it(fits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = AddressSettingsRepository()
    settings.add("a", {"dead_letter_address": "DLQ"})
    server = OpenWireServer(settings=settings)
    core = server.login()
    for name in ("a", "DLQ"):
        core.create_queue(name)
    reads = []
    read = SimLargeFiles.read

    def counted(self: SimLargeFiles, *arguments: int) -> None:
        reads.append(arguments)
        read(self, *arguments)

    monkeypatch.setattr(SimLargeFiles, "read", counted)
    client = OpenWireClient(server, "c", WireFormatOptions(frame_bytes_max=1 << (24 if fits else 16)))
    client.greet()
    client.succeeds(client.login_info("c", "admin", "admin"))
    client.consume("a")
    send_large(core, "a", text_body(TEXT))
    server.settle()
    client.publish("small", "a")
    found = client.texts()
    server.beat()
    assert found == ([TEXT, "small"] if fits else ["small"])
    assert bool(reads) == fits
    assert server.broker.queues["DLQ"].message_count == (0 if fits else 1)
    assert files(server) == 1
