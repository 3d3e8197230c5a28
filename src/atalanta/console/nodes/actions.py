"""The table of what an operator may do: the operation of the node, its parameters, and words for the page.

The names of operations are those of Artemis' controls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

TARGET: Final = "target"
SELECTOR: Final = "selector"
COUNT: Final = "count"
PERSIST: Final = "persist"

QUEUE: Final = "queue"
ADDRESS: Final = "address"
MESSAGE: Final = "message"
CLIENT: Final = "client"


@dataclass(frozen=True)
class Action:
    """An action. `operation` decides the permission; `asks` are the fields of its form.

    `subject` is what it is done to. `removes`: messages are gone afterwards, so the page asks once more in plain words.
    """

    name: str
    label: str
    subject: str
    operation: str
    done: str  # "moved": the word before the number of messages in the result
    asks: tuple[str, ...] = ()
    removes: bool = False
    explains: str = ""


QUEUE_ACTIONS: Final = (
    Action("pause", "Pause", QUEUE, "pause", "paused", (PERSIST,),
           explains="No more messages are given to consumers; new ones are still taken."),
    Action("resume", "Resume", QUEUE, "resume", "resumed", explains="Messages are given to consumers again."),
    Action("move", "Move messages", QUEUE, "moveMessages", "moved", (TARGET, SELECTOR, COUNT),
           explains="The messages leave this queue for the target, a thousand at a time. A stop loses nothing: what "
           "was moved is there, what was not is still here."),
    Action("retry", "Retry messages", QUEUE, "retryMessages", "sent back", (SELECTOR,),
           explains="Dead letters and expired messages return to the queue that they came from. A message that came "
           "from nowhere stays. Atalanta nodes do a thousand at a time, and a job can be stopped."),
    Action("expire", "Expire messages", QUEUE, "expireMessages", "expired", (SELECTOR,), removes=True,
           explains="The messages go to the expiry address of this queue. Without one they are removed. Atalanta nodes "
           "do a thousand at a time, and a job can be stopped."),
    Action("purge", "Remove messages", QUEUE, "removeMessages", "removed", (SELECTOR,), removes=True,
           explains="The messages are removed for good, scheduled ones too. Without a selector: all of them. "
           "Atalanta nodes do a thousand at a time; a stop leaves the rest."),
)  # fmt: skip
ADDRESS_ACTIONS: Final = (
    Action("pause-address", "Pause", ADDRESS, "pause", "paused", (PERSIST,),
           explains="All queues of the address are paused."),
    Action("resume-address", "Resume", ADDRESS, "resume", "resumed", explains="All queues of the address go on."),
)  # fmt: skip
MESSAGE_ACTIONS: Final = (
    Action("move-messages", "Move", MESSAGE, "moveMessage", "moved", (TARGET,)),
    Action("copy-messages", "Copy", MESSAGE, "copyMessage", "copied", (TARGET,),
           explains="The originals stay."),
    Action("retry-messages", "Retry", MESSAGE, "retryMessage", "sent back",
           explains="Each message returns to the queue that it came from."),
    Action("expire-messages", "Expire", MESSAGE, "expireMessage", "expired", removes=True,
           explains="The messages go to the expiry address of this queue. Without one they are removed."),
    Action("dead-letter-messages", "To dead letters", MESSAGE, "sendMessageToDeadLetterAddress", "sent to dead letters",
           removes=True, explains="The messages go to the dead-letter address of this queue. Without one they are "
           "removed."),
    Action("remove-messages", "Remove", MESSAGE, "removeMessage", "removed", removes=True,
           explains="The messages are removed for good."),
)  # fmt: skip
CLIENT_ACTIONS: Final = (
    Action("close-connection", "Close connection", CLIENT, "closeConnectionWithID", "closed",
           explains="The client may connect again. Messages that it had and did not acknowledge return to their "
           "queues."),
    Action("close-session", "Close session", CLIENT, "closeSessionWithID", "closed",
           explains="Its transaction is rolled back, and messages that it had return to their queues."),
    Action("close-consumer", "Close consumer", CLIENT, "closeConsumerWithID", "closed",
           explains="Messages that it had return to their queue."),
)  # fmt: skip
SEND: Final = Action("send", "Send a message", QUEUE, "sendMessage", "sent")
SEND_TO_ADDRESS: Final = Action("send-to-address", "Send a message", ADDRESS, "sendMessage", "sent")

ACTIONS: Final = {
    action.name: action
    for action in (
        *QUEUE_ACTIONS, *ADDRESS_ACTIONS, *MESSAGE_ACTIONS, *CLIENT_ACTIONS, SEND, SEND_TO_ADDRESS,
    )
}  # fmt: skip


def operation_names(actions: tuple[Action, ...]) -> list[str]:
    """Returns the operations of the node that the actions call, each once."""
    return list(dict.fromkeys(action.operation for action in actions))
