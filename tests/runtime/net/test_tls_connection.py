"""TLS in the shell: bytes both ways, ends both ways, slow and broken handshakes, and the limit."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ssl
import threading
from pathlib import Path
from typing import Any

import pytest

from atalanta.cluster.inputs import NodeInputs
from atalanta.runtime.net import tls_handshakes
from atalanta.runtime.net.tls_connection import SecureConnection
from atalanta.runtime.process.event_loop import run
from atalanta.tls.context import ClientTls, client_tls, server_context
from atalanta.wire.tls_config import TlsConfig
from tests.certificates import PASSWORD, Authority
from tests.runtime.net.echo import Running, with_echo

both_loops = pytest.mark.parametrize("plain", [False, True], ids=["uvloop", "asyncio"])


class Sides:
    """A server's context and a client's."""

    def __init__(self, folder: Path) -> None:
        authority = Authority()
        holder = authority.holder("server", "localhost", "127.0.0.1")
        acceptor = TlsConfig(
            key_store_path=str(holder.key_store(folder)), key_store_password=PASSWORD
        )
        connector = TlsConfig(trust_store_path=str(authority.trust_pem(folder)))
        self.server = server_context(acceptor, ())
        self.connector: ClientTls = client_tls(connector, ())
        self.client = self.connector.context


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Sides:
    return Sides(tmp_path_factory.mktemp("stores"))


@both_loops
def test_bytes_both_ways_however_many(plain: bool, sides: Sides) -> None:
    data = bytes(range(256)) * 8_000  # many records, several reads

    async def use(running: Running) -> None:
        reader, writer = await running.connect(sides.client)
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        host, port = writer.get_extra_info("sockname")[:2]
        assert running.node.words("accept") == [("accept", 1, "artemis", f"{host}:{port}")]
        writer.write(data)
        assert await reader.readexactly(len(data)) == data
        writer.close()
        await running.until(lambda: running.node.words("closed"))

    _, node = run(with_echo(use, tls=sides.server), plain)
    assert node.words("closed") == [("closed", 1, "closed by the peer")]
    assert node.bytes_taken == len(data) + 5
    assert node.server_names == ["localhost"], "for connection routers"


@both_loops
def test_the_node_hears_whose_certificate_it_was(plain: bool, tmp_path: Path) -> None:
    authority = Authority()
    trust = str(authority.trust_pem(tmp_path))
    key = authority.holder("server", "localhost").key_store(tmp_path)
    acceptor = TlsConfig(
        key_store_path=str(key), key_store_password=PASSWORD, trust_store_path=trust,
        want_client_auth=True,
    )  # fmt: skip
    own = str(authority.holder("client").key_store(tmp_path))
    connector = TlsConfig(trust_store_path=trust, key_store_path=own, key_store_password=PASSWORD)
    strange = client_tls(TlsConfig(trust_store_path=trust), ()).context

    async def use(running: Running) -> None:
        for context in (client_tls(connector, ()).context, strange):
            reader, writer = await running.connect(context)
            writer.write(b"hello")
            assert await reader.readexactly(5) == b"hello"
            writer.close()

    _, node = run(with_echo(use, tls=server_context(acceptor, ())), plain)
    assert node.certificates == ["CN=client", ""]


@both_loops
def test_handshakes_are_done_beside_the_loop(plain: bool, tmp_path: Path) -> None:
    own = Sides(tmp_path)
    threads: list[str] = []
    check = own.server.sni_callback
    assert check is not None

    def noted(connection: Any, name: Any, context: ssl.SSLContext) -> int | None:
        threads.append(threading.current_thread().name)
        return check(connection, name, context)

    own.server.sni_callback = noted

    async def use(running: Running) -> None:
        async def talk(number: int) -> None:
            reader, writer = await running.connect(own.client)
            writer.write(b"%03d" % number)
            assert await reader.readexactly(3) == b"%03d" % number
            writer.close()

        await asyncio.gather(*(talk(number) for number in range(20)))

    _, node = run(with_echo(use, tls=own.server), plain)
    assert len(threads) == 20 and {name.split("_")[0] for name in threads} == {"atalanta-tls"}
    assert node.bytes_taken == 60


@both_loops
def test_a_peer_that_sends_on_without_end_before_its_handshake_is_over(
    plain: bool, sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that takes long: what comes meanwhile is bounded."""
    may_go_on = threading.Event()
    do_handshake = ssl.SSLObject.do_handshake

    def slow(tls: ssl.SSLObject) -> None:
        if threading.current_thread() is not threading.main_thread():
            may_go_on.wait(10)
        do_handshake(tls)

    monkeypatch.setattr(ssl.SSLObject, "do_handshake", slow)

    async def use(running: Running) -> None:
        reader, writer = await running.connect(None)
        writer.write(b"\x16\x03\x01\x40\x00")
        await running.until(lambda: running.shell.connections.handshaking == 1)
        try:
            for _ in range(64):
                writer.write(bytes(1 << 16))
                await asyncio.wait_for(writer.drain(), 10)
            assert await asyncio.wait_for(reader.read(), 10) == b""
        except ConnectionError:
            pass  # cut off while it went on
        await running.until(lambda: running.shell.connections.handshaking == 0)
        may_go_on.set()

    _, node = run(with_echo(use, tls=sides.server), plain)
    assert not node.words("accept")


@both_loops
def test_strangers_who_went_away_cost_no_handshake(
    plain: bool, sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They count against no limit any more: what waits for them could become any amount."""
    may_go_on = threading.Event()
    done: list[ssl.SSLObject] = []
    do_handshake = ssl.SSLObject.do_handshake

    def slow(tls: ssl.SSLObject) -> None:
        if threading.current_thread() is not threading.main_thread():
            done.append(tls)
            may_go_on.wait(10)
        do_handshake(tls)

    monkeypatch.setattr(ssl.SSLObject, "do_handshake", slow)

    async def use(running: Running) -> None:
        for _ in range(10):
            _, stranger = await running.connect(None)
            stranger.write(b"\x16\x03\x01\x40\x00")
            await stranger.drain()
            stranger.close()
        counters = running.shell.trace.counters
        await running.until(lambda: counters.get("connections.tls_refused") == 10)
        may_go_on.set()
        reader, writer = await running.connect(sides.client)
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        writer.close()

    run(with_echo(use, tls=sides.server), plain)
    assert len(set(map(id, done))) <= 2, "one that was there when its turn came, and the last"


@both_loops
def test_a_close_comes_after_what_was_written_and_with_a_goodbye_of_tls(
    plain: bool, sides: Sides
) -> None:
    async def use(running: Running) -> None:
        reader, writer = await running.connect(sides.client)
        writer.write(b"bye")
        # A cut wire would be an SSLError, or a ConnectionResetError.
        assert await reader.read() == b"bye"
        writer.close()
        await running.until(lambda: running.node.words("closed"))

    _, node = run(with_echo(use, tls=sides.server), plain)
    assert node.words("closed") == [("closed", 1, "said bye")]


@both_loops
def test_who_says_nothing_is_dropped_when_the_time_for_the_handshake_is_over(
    plain: bool, sides: Sides, caplog: pytest.LogCaptureFixture
) -> None:
    async def use(running: Running) -> None:
        silent, silent_writer = await running.connect()
        assert await silent.read() == b""
        await running.until(lambda: not running.shell.connections.handshaking)
        silent_writer.close()

    with caplog.at_level("WARNING"):
        _, node = run(with_echo(use, tls=sides.server, handshake_timeout_s=0.1), plain)
    assert not node.words("accept")
    (refused,) = [line for line in caplog.messages if line.startswith("tls_refused")]
    assert "the handshake took longer than 0.1 s" in refused
    assert "acceptor=artemis" in refused and "remote=127.0.0.1:" in refused


@both_loops
def test_who_does_not_finish_the_handshake_is_dropped_and_never_reaches_the_node(
    plain: bool, sides: Sides, caplog: pytest.LogCaptureFixture
) -> None:
    async def use(running: Running) -> None:
        wrong, wrong_writer = await running.connect()
        wrong_writer.write(b"ARTEMIS" + bytes(30))
        assert len(await wrong.read()) < 20, "an alert at most"
        gone, gone_writer = await running.connect()
        gone_writer.close()
        with pytest.raises(ssl.SSLCertVerificationError):
            await running.connect(ssl.create_default_context())
        await running.until(lambda: not running.shell.connections.handshaking)
        assert running.shell.acceptors.open["artemis"].accepted_now == 0
        reader, writer = await running.connect(sides.client)
        writer.write(b"x")
        assert await reader.readexactly(1) == b"x"
        for each in (wrong_writer, writer):
            each.close()

    with caplog.at_level("WARNING"):
        _, node = run(with_echo(use, tls=sides.server), plain)
    assert len(node.words("accept")) == 1
    refused = [line for line in caplog.messages if line.startswith("tls_refused")]
    assert len(refused) == 3
    assert all("acceptor=artemis" in line and "remote=127.0.0.1:" in line for line in refused)


def test_handshakes_count_against_the_limit_from_their_first_byte(sides: Sides) -> None:
    async def use(running: Running) -> None:
        first, first_writer = await running.connect()
        await running.until(lambda: running.shell.connections.handshaking)
        _, second = await running.connect()
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await first.readexactly(1)
        assert running.shell.connections.handshaking == 1
        first_writer.close()
        second.close()

    run(with_echo(use, connections_max=1, tls=sides.server))


@both_loops
def test_dialing(plain: bool, sides: Sides) -> None:
    async def use(running: Running) -> None:
        links = running.shell.links
        links.secure({"good": sides.connector, "stranger": strangers()})
        links.dial_secure("a", "127.0.0.1", running.port, "good")
        await running.until(lambda: running.node.words("dialed"))
        links.dial_secure("b", "127.0.0.1", running.port, "stranger")
        links.dial_secure("c", "127.0.0.1", running.port, "none")
        await running.until(lambda: len(running.node.words("dial_failed")) == 2)
        [(_, number, key)] = running.node.words("dialed")
        assert key == "a"
        assert isinstance(number, int)
        running.shell.connections.write(number, b"bye")
        running.shell.driver.post(NodeInputs.on_timer, "turn")
        await running.until(lambda: len(running.node.words("closed")) == 2)

    _, node = run(with_echo(use, tls=sides.server), plain)
    failed = {str(words[1]): str(words[2]) for words in node.words("dial_failed")}
    assert "certificate verify failed" in failed["b"]
    assert "connector none has no TLS settings" in failed["c"]


@both_loops
def test_a_server_that_asks_for_a_certificate_that_the_connector_has_not(plain: bool, tmp_path: Path) -> None:
    """TLS 1.3 tells it after the handshake; the reason says what to change."""
    authority = Authority()
    trust = str(authority.trust_pem(tmp_path))
    key = str(authority.holder("server", "127.0.0.1").key_store(tmp_path))
    asking = TlsConfig(
        key_store_path=key, key_store_password=PASSWORD, trust_store_path=trust, need_client_auth=True
    )

    async def use(running: Running) -> None:
        links = running.shell.links
        links.secure({"bare": client_tls(TlsConfig(trust_store_path=trust), ())})
        links.dial_secure("a", "127.0.0.1", running.port, "bare")
        await running.until(lambda: running.node.words("closed"))

    _, node = run(with_echo(use, tls=server_context(asking, ())), plain)
    [(*_, why)] = node.words("closed")
    assert "the peer does not accept the certificate of this end, or asks for one: see keyStorePath" in str(why)


def test_a_server_that_never_answers_the_handshake(sides: Sides) -> None:
    async def use(running: Running) -> None:
        links = running.shell.links
        links.secure({"good": sides.connector})
        links._dialer._timeout_s = 0.3
        links.dial_secure("a", "127.0.0.1", running.port, "good")
        await running.until(lambda: running.node.words("dial_failed"))

    # A plain echo sends the hello back, which is no answer.
    _, node = run(with_echo(use))
    assert node.words("dialed") == []


def strangers() -> ClientTls:
    return ClientTls(ssl.create_default_context())


def client_hello(context: ssl.SSLContext) -> bytes:
    outgoing = ssl.MemoryBIO()
    tls = context.wrap_bio(ssl.MemoryBIO(), outgoing, False, "localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


@both_loops
def test_who_says_hello_and_hangs_up_leaves_no_memory_behind(plain: bool, sides: Sides) -> None:
    """OpenSSL's memory is not counted by the garbage collector, which runs rarely: nothing may wait for it."""
    hello = client_hello(sides.client)
    kept: list[int] = []

    def secure() -> int:
        return sum(
            isinstance(one, SecureConnection) or (isinstance(one, ssl.SSLObject) and one.server_side)
            for one in gc.get_objects()
        )

    async def use(running: Running) -> None:
        before = secure()
        gc.disable()
        try:
            for said in (hello, hello, b"no hello", b""):
                reader, writer = await running.connect()
                writer.write(said)
                if said == hello:
                    await reader.read(100)
                writer.close()
                del reader, writer
            connections = running.shell.connections
            await running.until(lambda: connections.descriptors() == 0)
            secret, plain_writer = await running.connect(sides.client)
            plain_writer.write(b"hello")
            await secret.readexactly(5)
            plain_writer.close()
            del secret, plain_writer
            await running.until(lambda: connections.descriptors() == 0)
            await asyncio.sleep(0.05)
            kept.append(secure() - before)
        finally:
            gc.enable()

    run(with_echo(use, tls=sides.server), plain)
    assert kept == [0]


@both_loops
def test_memory_goes_back_to_the_system_after_many_connections(
    plain: bool, sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    trims: list[int] = []
    monkeypatch.setattr(tls_handshakes, "TRIM_CONNECTIONS", 3)
    monkeypatch.setattr(tls_handshakes, "TRIM_DELAY_S", 0.05)
    monkeypatch.setattr(tls_handshakes, "trim_allocator", lambda: trims.append(1))
    hello = client_hello(sides.client)

    async def use(running: Running) -> None:
        for _ in range(5):
            _, writer = await running.connect()
            writer.write(hello)
            writer.close()
        await running.until(lambda: trims)

    run(with_echo(use, tls=sides.server), plain)
    assert trims == [1]
