"""Virtual topics: queues whose names say which topic they get their messages from.

`Consumer.*.VirtualTopic.>;2` names, as virtualTopicConsumerWildcards of Artemis does, queues and the number of words
before the topic's name: `Consumer.A.VirtualTopic.T` gets what is sent to the topic `VirtualTopic.T`.
"""

from __future__ import annotations

from typing import Final

from atalanta.message.encoding.digits import all_digits

CLASSIC: Final = "Consumer.*.VirtualTopic.>;2"  # of a broker whose file says nothing else
SELECTOR_AWARE: Final = "selectorAware"
LOCAL: Final = "local"
OPTIONS: Final = (SELECTOR_AWARE, LOCAL)
FORMS_MAX: Final = 100


class VirtualTopicForm:
    """One form of names: its words, and how many stand before the topic.

    `selector_aware`: a queue keeps only what its consumers select. `local`: it gets nothing that a bridge of a network
    brings to its topic.
    """

    def __init__(self, words: list[str], before: int, selector_aware: bool, local: bool) -> None:
        self.words = words
        self.before = before
        self.selector_aware = selector_aware
        self.local = local

    def fits(self, words: list[str]) -> bool:
        """Returns whether the form names a queue. Only words behind the prefix may be wildcards in its name."""
        for place, word in enumerate(self.words):
            if place >= len(words):
                return False
            if word == ">" and place == len(self.words) - 1:
                return len(words) > self.before
            if word != "*" and word != words[place]:
                return False
            if place < self.before and words[place] in ("*", ">"):
                return False
        return len(words) == len(self.words) and len(words) > self.before


class VirtualTopic:
    """The topic of a queue."""

    def __init__(self, name: str, selector_aware: bool, local: bool) -> None:
        self.name = name
        self.selector_aware = selector_aware
        self.local = local


class VirtualTopics:
    """The forms of a broker or acceptor. The first one that fits counts."""

    def __init__(self, forms: list[VirtualTopicForm]) -> None:
        self.forms = forms

    def topic_of(self, queue: str) -> VirtualTopic | None:
        """Returns the topic of a queue; None for one of its own."""
        if not self.forms or "." not in queue:
            return None
        words = queue.split(".")
        for form in self.forms:
            if form.fits(words):
                return VirtualTopic(".".join(words[form.before :]), form.selector_aware, form.local)
        return None


def takes_local(text: str, queue: str) -> bool:
    """Returns whether a queue gets nothing that a bridge brings to its topic; `text`: the forms of the broker."""
    if LOCAL not in text:
        return False
    topic = virtual_topics(text).topic_of(queue)
    return topic is not None and topic.local


_known: Final[dict[str, VirtualTopics]] = {}  # by their text: those of the files of this process


def virtual_topics(text: str) -> VirtualTopics:
    """Returns the forms of a text with commas between them. ValueError: one is damaged."""
    found = _known.get(text)
    if found is None:
        found = _parsed(text)
        _known[text] = found
    return found


def _parsed(text: str) -> VirtualTopics:
    forms: list[VirtualTopicForm] = []
    for part in text.split(","):
        name, _, rest = part.strip().partition(";")
        if not name and not rest:
            continue
        before, *options = rest.split(";")
        words = name.split(".")
        if not all_digits(before, 3) or not 0 < int(before) <= len(words) or "" in words:
            shown = part.strip()[:100]
            raise ValueError(f"'{shown}' is not NAME;NUMBER, as in {CLASSIC}: the number of words before the topic")
        values: dict[str, bool] = {}
        for option in options:
            key, _, value = option.partition("=")
            if key not in OPTIONS:
                raise ValueError(f"'{option[:100]}' is neither {SELECTOR_AWARE}=true nor {LOCAL}=true")
            values[key] = value.lower() == "true"
        selector_aware, local = values.get(SELECTOR_AWARE, False), values.get(LOCAL, False)
        forms.append(VirtualTopicForm(words, int(before), selector_aware, local))
        if len(forms) > FORMS_MAX:
            raise ValueError(f"at most {FORMS_MAX} forms")
    return VirtualTopics(forms)
