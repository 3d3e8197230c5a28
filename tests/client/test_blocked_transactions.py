"""Transactions whose clean-up fails, or that wait for a full address: the first error is the one to see."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from atalanta.client import Message, Xid
from atalanta.client import connect as asyncio_connect
from atalanta.client.blocking import Branch, Connection, Transaction, connect
from tests.broker_process import BrokerProcess
from tests.broker_xml import write_broker_xml
from tests.ports import free_port
from tests.waiting import until

pytestmark = pytest.mark.process

SETTINGS = """<address-settings>
  <address-setting match="small.#"><max-size-bytes>10000</max-size-bytes>
    <address-full-policy>BLOCK</address-full-policy></address-setting></address-settings>"""
FULL = 8  # messages of 1,000 bytes, with their headers
XID = Xid(1, b"branch", b"global")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    port = free_port()
    with BrokerProcess(write_broker_xml(tmp_path, port, more=SETTINGS), port=port) as made:
        yield made


def client(broker: BrokerProcess) -> Connection:
    return connect(f"tcp://127.0.0.1:{broker.port}?reconnectAttempts=0&initialConnectAttempts=1&producerWindowSize=4000")


def count(connection: Connection, queue: str) -> int:
    return connection.query_queue(queue).message_count


def of_branch(connection: Connection) -> Branch:
    return connection.xa_resource.branch(XID)


def of_session(connection: Connection) -> Transaction:
    return connection.transaction()


@pytest.mark.parametrize("made", [of_branch, of_session])
def test_the_first_error_is_seen_when_the_connection_is_lost_with_it(
    broker: BrokerProcess, made: Callable[[Connection], Transaction]
) -> None:
    with client(broker) as connection:
        with pytest.raises(ZeroDivisionError), made(connection) as transaction:
            transaction.send("out", Message(b"x"), "anycast")
            broker.__exit__()
            raise ZeroDivisionError


@pytest.mark.parametrize("made", [of_branch, of_session])
def test_an_error_of_the_clean_up_is_a_note_on_the_first_one(
    broker: BrokerProcess, made: Callable[[Connection], Transaction], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(self: object) -> None:
        raise OSError("no descriptors")

    with client(broker) as connection:
        transaction = made(connection)
        for name in ("rollback", "close"):
            monkeypatch.setattr(transaction._transaction, name, fails.__get__(transaction._transaction))
        with pytest.raises(ZeroDivisionError) as caught, transaction:
            raise ZeroDivisionError
        notes = caught.value.__notes__
        assert [note.partition(":")[0] for note in notes] == ["the rollback failed, too", "the close failed, too"]
        assert all("no descriptors" in note for note in notes)


def fill(connection: Connection, address: str) -> None:
    """Sends until the address grants no credits."""
    producer = connection.producer(address, "anycast")

    def full() -> bool:
        connection.refresh()
        if not producer.blocked:
            producer.send_soon(Message(bytes(1_000)))
        return producer.blocked and count(connection, address) >= FULL

    until(full, "the full address")


class Impatient:
    """What a program says to a full address: it waits for a moment."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, float]] = []

    def __call__(self, address: str, seconds: float) -> None:
        self.calls.append((address, seconds))
        if seconds > 0.5:
            raise TimeoutError(address)


def test_a_branch_of_a_full_address_ends_when_its_program_says_so(broker: BrokerProcess) -> None:
    with client(broker) as connection:
        fill(connection, "small.one")
        with client(broker) as other:
            impatient = Impatient()
            with pytest.raises(TimeoutError, match=r"small.one"):
                with other.xa_resource.branch(XID, impatient) as branch:
                    for number in range(20):
                        branch.send("small.one", Message(f"row {number}"), "anycast")
                    branch.prepare()
            assert [address for address, _ in impatient.calls] == ["small.one"] * len(impatient.calls)
            assert other.xa_resource.recover() == []
            texts = []
            with connection.consumer("small.one") as consumer:
                while (message := consumer.receive(0.5)) is not None:
                    texts.append(message.body)
                    message.acknowledge()
            assert not [text for text in texts if text.startswith(b"row")]


def test_a_program_that_goes_on_after_its_wait_cannot_prepare_a_part(broker: BrokerProcess) -> None:
    with client(broker) as connection, client(broker) as other:
        fill(connection, "small.two")
        branch = other.xa_resource.branch(XID, Impatient())
        branch.open()
        with pytest.raises(TimeoutError):
            branch.send("small.two", Message(b"row"), "anycast")
        with pytest.raises(TimeoutError):
            branch.prepare()
        branch.close()
        assert other.xa_resource.recover() == []


def test_an_asyncio_program_ends_its_wait_or_goes_on(broker: BrokerProcess) -> None:
    async def play(connection: Connection) -> list[str | None]:
        async with asyncio_connect(f"tcp://127.0.0.1:{broker.port}") as other:
            with pytest.raises(TimeoutError):
                async with other.xa_resource.branch(XID, Impatient()) as short:
                    await short.send("small.three", Message("never"), "anycast")
            branch = other.xa_resource.branch(XID, lambda address, seconds: None)
            async with branch:
                sending = asyncio.create_task(branch.send("small.three", Message("row"), "anycast"))
                await asyncio.sleep(1)
                assert not sending.done()
                await asyncio.to_thread(take_all, connection, "small.three")
                await sending
                await branch.prepare()
            await other.xa_resource.commit(XID)
        return take_all(connection, "small.three")

    with client(broker) as connection:
        fill(connection, "small.three")
        assert asyncio.run(play(connection)) == ["row"]


def take_all(connection: Connection, queue: str) -> list[str | None]:
    found = []
    with connection.consumer(queue) as consumer:
        while (message := consumer.receive(0.5)) is not None:
            found.append(message.text)
            message.acknowledge()
    return found
