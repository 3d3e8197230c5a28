"""Queues: references, consumers, dispatch order."""

from typing import TYPE_CHECKING

from atalanta.face import face

if TYPE_CHECKING:
    from atalanta.kernel.queue.consumer import QueueConsumer
    from atalanta.kernel.queue.paging.iteration import everything
    from atalanta.kernel.queue.paging.retained_messages import retained_of
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.reference import DONE, READY, Reference
    from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
else:
    __getattr__ = face(__name__)

__all__ = [
    "ANYCAST", "DONE", "MULTICAST", "READY", "Queue", "QueueConsumer", "Reference", "everything",
    "retained_of",
]
