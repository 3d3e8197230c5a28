"""The Python client of Atalanta and Artemis (CORE protocol). `atalanta.client.blocking` works without asyncio.

    from atalanta.client import Message, connect

    async with connect("tcp://localhost:61616", user="u", password="p") as connection:
        producer = await connection.producer("orders", routing="anycast")
        await producer.send(Message(text="one coffee", properties={"sugar": True}))
        async with await connection.consumer("orders") as consumer:
            async for message in consumer:
                await message.acknowledge()
"""

from typing import TYPE_CHECKING

from atalanta.face import face

if TYPE_CHECKING:
    from atalanta.client.asyncio_client import Connecting, ConnectionFactory, connect, run
    from atalanta.client.cluster_consumer import ClusterConsumer
    from atalanta.client.connection import Connection
    from atalanta.client.consumer import Consumer
    from atalanta.client.discovery.load_balancing import (
        Balancing,
        FirstElement,
        Random,
        RandomSticky,
        RoundRobin,
    )
    from atalanta.client.log.log_view import Chunk, Lease, LogView, Plan
    from atalanta.client.management import Management, ManagementFailed
    from atalanta.client.message import Message, Property, ReceivedMessage
    from atalanta.client.options import Server
    from atalanta.client.producer import Producer
    from atalanta.client.queue_kind import QueueKind
    from atalanta.client.transactions.branch import Branch, XaResource
    from atalanta.client.transactions.transaction import Transaction
    from atalanta.message.log_position import Position
    from atalanta.message.properties import Byte, Char, Float, Int, Short
    from atalanta.wire.core.client.errors import (
        AddressDoesNotExist,
        AddressExists,
        AddressFull,
        BranchRefused,
        BrokerRefused,
        CallTimedOut,
        ClientError,
        Closed,
        ConnectFailed,
        ConnectionLost,
        DuplicateId,
        DuplicateMetadata,
        Fenced,
        IllegalState,
        IncarnationChanged,
        IncompatibleVersion,
        InternalError,
        InvalidFilter,
        LeaseEnded,
        LogViewUnsupported,
        MessageDropped,
        MessageTooLarge,
        NotAuthorized,
        QueueDoesNotExist,
        QueueExists,
        RangeLost,
        SendFailed,
        SessionRejected,
        SettleUnsupported,
        TooManyConsumers,
        TransactionOutcomeUnknown,
        TransactionRolledBack,
        UnknownBranch,
        WrongRoutingType,
    )
    from atalanta.wire.core.client.topology import Member
    from atalanta.wire.core.lost_range import LostRange
    from atalanta.wire.core.packets.transaction import Xid
    from atalanta.wire.uri import UriError
else:
    __getattr__ = face(__name__)

__all__ = [
    "AddressDoesNotExist",
    "AddressExists",
    "AddressFull",
    "Balancing",
    "Branch",
    "BranchRefused",
    "BrokerRefused",
    "Byte",
    "CallTimedOut",
    "Char",
    "Chunk",
    "ClientError",
    "Closed",
    "ClusterConsumer",
    "ConnectFailed",
    "Connecting",
    "Connection",
    "ConnectionFactory",
    "ConnectionLost",
    "Consumer",
    "DuplicateId",
    "DuplicateMetadata",
    "Fenced",
    "FirstElement",
    "Float",
    "IllegalState",
    "IncarnationChanged",
    "IncompatibleVersion",
    "Int",
    "InternalError",
    "InvalidFilter",
    "Lease",
    "LeaseEnded",
    "LogView",
    "LogViewUnsupported",
    "LostRange",
    "Management",
    "ManagementFailed",
    "Member",
    "Message",
    "MessageDropped",
    "MessageTooLarge",
    "NotAuthorized",
    "Plan",
    "Position",
    "Producer",
    "Property",
    "QueueDoesNotExist",
    "QueueExists",
    "QueueKind",
    "Random",
    "RandomSticky",
    "RangeLost",
    "ReceivedMessage",
    "RoundRobin",
    "SendFailed",
    "Server",
    "SessionRejected",
    "SettleUnsupported",
    "Short",
    "TooManyConsumers",
    "Transaction",
    "TransactionOutcomeUnknown",
    "TransactionRolledBack",
    "UnknownBranch",
    "UriError",
    "WrongRoutingType",
    "XaResource",
    "Xid",
    "connect",
    "run",
]
