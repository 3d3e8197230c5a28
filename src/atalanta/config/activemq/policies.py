"""Conversion of `<destinationPolicy>` and of redelivery policies to address settings.

In Classic the nearest `<policyEntry>` of a destination counts alone. Here settings of wider matches fill the gaps.
So each setting states Classic's default for what another one sets. A queue and a topic of one name are one address
here: where both have a policy and differ, that of the queue counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from atalanta.config.activemq import tables
from atalanta.config.activemq.elements import NO_BEANS, Core, Elements, listed, only
from atalanta.config.activemq.slow_subscribers import read_eviction, read_limit
from atalanta.config.xml.tree import XmlElement, made

ALL: Final = ">"
DEAD_LETTERS: Final = "ActiveMQ.DLQ"
# The address of individual dead-letter queues. It has no queue of its own, which would get each message again.
STRATEGY: Final = ("processExpired", "processNonPersistent", "expiration")  # of every dead-letter strategy
INDIVIDUAL: Final = "ActiveMQ.DLQ.individual"
KINDS: Final = ("queue", "topic")
TEMPORARY: Final = ("tempQueue", "tempTopic")
SEND_TIMEOUT: Final = "sendFailIfNoSpaceAfterTimeout"
KEPT_MAX: Final = "10000"  # messages of a topic that a time or a size limits
ENDLESS_MS: Final = 2**31 - 1
INT_MAX: Final = 2**31 - 1


@dataclass
class Setting:
    """The settings of one match: element -> (value, node that said so). `kinds`: of queues, of topics, or both."""

    node: XmlElement
    values: dict[str, tuple[str, XmlElement]] = field(default_factory=dict)
    kinds: set[str] = field(default_factory=set)

    def states(self, name: str) -> bool:
        """Returns whether the match has Classic's default for what another policy sets: a queue's policy says nothing
        of what is of topics alone, and the other way round."""
        if self.kinds == {"queue"}:
            return name not in tables.OF_TOPICS
        return self.kinds != {"topic"} or name not in tables.OF_QUEUES


class Policies:
    """Collects settings by match. `finish` adds them to the tree."""

    def __init__(self, elements: Elements, core: Core, root: XmlElement) -> None:
        self.elements = elements
        self.core = core
        usages = [each for outer in root.all("systemUsage") for each in outer.all("systemUsage")]
        self.fails = any(elements.true(each, each.attributes, "sendFailIfNoSpace") for each in usages)
        waits = [elements.whole(each, each.attributes, SEND_TIMEOUT, 0) for each in usages]
        self.wait_ms = next((each for each in waits if each > 0), -1)
        self.purges = elements.whole(root, root.attributes, "schedulePeriodForDestinationPurge", 0) > 0
        self.drops = False
        self.counts_deliveries = False  # in the journal, before each delivery
        self.policies: dict[str, Setting] = {ALL: Setting(root)}
        self.redeliveries: dict[str, Setting] = {}
        self.dead_letter_queues: dict[str, XmlElement] = {DEAD_LETTERS: root}
        self.everywhere: dict[str, str] = {}  # settings of all addresses, from plugins
        self.expiry_period: str | None = None
        self.replay: tuple[bool, int] | None = None  # over networks: whether, and after how many ms

    def read(self, section: XmlElement) -> None:
        """Reads `<destinationPolicy><policyMap>`."""
        self.elements.children(section, {"policyMap": self._map})

    def _map(self, node: XmlElement) -> None:
        self.elements.children(node, {"policyEntries": self._entries, "defaultEntry": self._default})

    def _entries(self, node: XmlElement) -> None:
        # Queues first: the policy of a topic of the same name is compared with theirs.
        for child in sorted(node.children, key=lambda each: "topic" in each.attributes):
            entries = XmlElement("policyEntries", "", "", 0, {}, "", [child])
            self.elements.children(entries, {"policyEntry": self._entry})

    def _default(self, node: XmlElement) -> None:
        for child in node.children:
            child.attributes.setdefault("queue", ALL)
        self._entries(node)

    def _entry(self, node: XmlElement) -> None:
        names = (*tables.POLICY_SIZES, *tables.POLICY_PLAIN, *tables.POLICY_OTHER, *tables.PREFETCHES)
        values = self.elements.values(node, names, tables.POLICY_SILENT, tables.POLICY_LOST, tables.POLICY_FIXED)
        found: dict[str, str] = {}
        for name, element in tables.POLICY_SIZES.items():
            size = self.elements.size(node, values, name)
            if size is not None:
                found[element] = str(size or -1)
        for name, element in tables.POLICY_PLAIN.items():
            if name in values:
                found[element] = values[name]
        if found.get("default-consumers-before-dispatch", "0") != "0":
            if found.get("default-delay-before-dispatch", "0") == "0":
                found["default-delay-before-dispatch"] = tables.DISPATCH_DELAY_MS
        self._prefetches(node, values, found)
        self._unused(node, values, found)
        flow = self.elements.true(node, values, "producerFlowControl", True)
        fails = self.elements.true(node, values, "sendFailIfNoSpace", self.fails)
        found["address-full-policy"] = "PAGE"
        self._limit_sends(node, values, fails, found)

        def queue_cursor(child: XmlElement) -> None:
            cursor = only(child)
            if cursor is not None and cursor.name in ("vmQueueCursor", "vmCursor") and flow:
                found["address-full-policy"] = "FAIL" if fails else "BLOCK"

        def factory(child: XmlElement) -> None:
            each = only(child)
            if each is not None:
                self._groups(each, each.name, each.attributes.get("bucketCount", ""), found)

        if "messageGroupMapFactoryType" in values:
            kind, _, query = values["messageGroupMapFactoryType"].partition("?")
            self._groups(node, kind, query.partition("bucketCount=")[2], found)
        of_topic = found if "topic" in node.attributes else {}  # in Classic they have no effect for queues either
        self.elements.children(
            node,
            {
                "deadLetterStrategy": lambda child: self._dead_letters(child, node, found),
                "pendingQueuePolicy": queue_cursor,
                "messageGroupMapFactory": factory,
                "subscriptionRecoveryPolicy": lambda child: self._retroactive(child, found),
                "networkBridgeFilterFactory": lambda child: self._bridge_filter(child, node),
                **dict.fromkeys(
                    ("pendingSubscriberPolicy", "pendingDurableSubscriberPolicy"),
                    lambda child: self._cursor(child, flow),
                ),
                "dispatchPolicy": self._dispatch,
                "pendingMessageLimitStrategy": lambda child: read_limit(self.elements, child, of_topic),
                "messageEvictionStrategy": lambda child: read_eviction(self.elements, child, of_topic),
            },
            {},
            tables.POLICY_CHILDREN_LOST,
        )
        if self.elements.true(node, values, "persistJMSRedelivered"):
            self.counts_deliveries = True
        if "retroactive-on-request" in found and self.elements.true(node, values, "alwaysRetroactive"):
            found["retroactive-on-request"] = "false"
        for match in self._matches(node):
            if match == ALL and values.get("expireMessagesPeriod"):
                period = self.elements.whole(node, values, "expireMessagesPeriod", 30_000)
                self.expiry_period = str(period or -1)
            elif values.get("expireMessagesPeriod"):
                why = "one period for all addresses: that of the policy for >"
                self.elements.finding(node, "policyEntry expireMessagesPeriod", why, True)
            self._store(self.policies, match, node, found)

    def _prefetches(self, node: XmlElement, values: dict[str, str], found: dict[str, str]) -> None:
        """Reads how many messages clients may have that leave their own prefetch as it is."""
        for kind, elements in tables.POLICY_PREFETCHES.items():
            for name, element in elements.items():
                if name in values and kind in node.attributes:  # that of the other kind has no effect in Classic either
                    found[element] = str(self.elements.whole(node, values, name, 0))
        if "usePrefetchExtension" in values:
            extends = self.elements.true(node, values, "usePrefetchExtension", True)
            found["openwire-prefetch-extension"] = str(extends).lower()

    def _limit_sends(self, node: XmlElement, values: dict[str, str], fails: bool, found: dict[str, str]) -> None:
        """Reads what happens to a send without room: it is refused at once, or after a time. The disk counts, too."""
        if fails or self.fails:
            found["disk-full-policy"] = "FAIL" if fails else "BLOCK"
        wait_ms = self.elements.whole(node, values, SEND_TIMEOUT, self.wait_ms)
        if wait_ms > 0 or self.wait_ms > 0:
            found["blocked-send-timeout"] = str(wait_ms if wait_ms > 0 else -1)

    def _matches(self, node: XmlElement) -> list[str]:
        matches = [each for kind in KINDS for each in listed(node.attributes.get(kind, ""))]
        if any(each in node.attributes for each in TEMPORARY):
            why = f"temporary destinations have the settings of {ALL}"
            self.elements.finding(node, f"{node.name} tempQueue", why, True)
        elif not matches:
            self.elements.problem(node, f"a <{node.name}> needs a queue or a topic", f'queue="{ALL}" is all')
        return matches

    def _store(self, settings: dict[str, Setting], match: str, node: XmlElement, found: Mapping[str, str]) -> None:
        """Keeps the settings of a match. Of two that differ, the first one counts, and the other is a finding."""
        setting = settings.setdefault(match, Setting(node))
        setting.kinds.update(kind for kind in KINDS if match in listed(node.attributes.get(kind, "")))
        for name, text in found.items():
            known = setting.values.get(name)
            if known is None:
                setting.values[name] = (text, node)
            elif known[0] != text:
                why = f"{known[0]} counts, from line {known[1].line}: a queue and a topic of one name are one address"
                self.elements.finding(node, f"{node.name} {match}: {name} {text}".rstrip(), why, True)

    def _unused(self, node: XmlElement, values: dict[str, str], found: dict[str, str]) -> None:
        """Reads when unused destinations are deleted."""
        delay = values.get("inactiveTimeoutBeforeGC", values.get("inactiveTimoutBeforeGC", "60000"))
        if not self.elements.true(node, values, "gcInactiveDestinations"):
            return
        if not self.purges:
            name = "gcInactiveDestinations"
            self.elements.finding(node, f"policyEntry {name}", tables.GC_SILENT[name])
            return
        for what in ("queues", "addresses"):
            found[f"auto-delete-{what}"] = "true"
            found[f"auto-delete-{what}-delay"] = delay

    def _groups(self, node: XmlElement, kind: str, buckets: str, found: dict[str, str]) -> None:
        """Reads how message groups are kept: by name, or by the hash in buckets."""
        if kind in ("bucket", "messageGroupHashBucketFactory"):
            found["default-group-buckets"] = buckets or "1024"
        elif kind in ("cached", "cachedMessageGroupMapFactory"):
            name = "messageGroupMapFactory cached"
            self.elements.finding(node, name, tables.GROUPS_SILENT[name])
        elif kind not in ("simple", "simpleMessageGroupMapFactory"):
            self.elements.problem(node, f"messageGroupMapFactory: '{kind}' is none of simple, bucket, cached")

    def _cursor(self, node: XmlElement, flow: bool) -> None:
        """Reads where messages of slow subscribers wait: `flow`, senders wait with them."""
        silent = tables.CURSORS_SILENT if flow else tables.CURSORS_WITHOUT_FLOW_SILENT
        self.elements.children(node, {}, silent, tables.CURSORS_LOST if flow else {})

    def _dispatch(self, node: XmlElement) -> None:
        self.elements.children(node, {}, tables.DISPATCH_SILENT, tables.DISPATCH_LOST)

    def _retroactive(self, node: XmlElement, found: dict[str, str]) -> None:
        """Reads which messages a subscription begins with that asks for them."""
        inner = only(node)
        name = "" if inner is None else inner.name
        if inner is None or name == "noSubscriptionRecoveryPolicy":
            return
        limits: dict[str, str] = {}
        if name == "lastImageSubscriptionRecoveryPolicy":
            count = "1"
        elif name == "fixedCountSubscriptionRecoveryPolicy":
            count = self.elements.values(inner, ("maximumSize",)).get("maximumSize", "100")
        elif name == "timedSubscriptionRecoveryPolicy":
            values = self.elements.values(inner, ("recoverDuration",))
            count, limits = KEPT_MAX, {"retroactive-message-age": values.get("recoverDuration", "60000")}
        elif name == "fixedSizedSubscriptionRecoveryPolicy":
            values = self.elements.values(inner, ("maximumSize",), tables.RECOVERY_SILENT)
            count, limits = KEPT_MAX, {"retroactive-message-bytes": values.get("maximumSize", "65536")}
        elif name == "retainedMessageSubscriptionRecoveryPolicy":
            count, limits = "1", {"retroactive-marked-only": "true"}
            self._read_wrapped(inner)
        else:
            why = "no effect: a subscription that asks for older messages gets none"
            self.elements.finding(inner, name, why, True)
            return
        found.update({"retroactive-message-count": count, "retroactive-on-request": "true", **limits})

    def _read_wrapped(self, node: XmlElement) -> None:
        """Reads the policy behind that of retained messages."""
        why = "no effect: a subscription begins with the retained message only"
        if self.elements.values(node, ("wrapped",)).get("wrapped", "#null") != "#null":
            self.elements.finding(node, "wrapped", why, True)

        def wrapped(child: XmlElement) -> None:
            inner = only(child)
            if inner is not None and inner.name != "noSubscriptionRecoveryPolicy":
                self.elements.finding(inner, inner.name, why, True)

        self.elements.children(node, {"wrapped": wrapped})

    def _bridge_filter(self, section: XmlElement, entry: XmlElement) -> None:
        """Reads when messages return over a bridge: the policy for all queues says it for every network connector."""
        inner = only(section)
        if inner is None:
            return
        if inner.name != "conditionalNetworkBridgeFilterFactory":
            self.elements.finding(inner, inner.name, NO_BEANS, True)
            return
        lost = dict.fromkeys(("rateLimit", "rateDuration"), "the messages over a bridge are not limited in number")
        values = self.elements.values(inner, ("replayWhenNoConsumers", "replayDelay"), {}, lost)
        if ALL not in listed(entry.attributes.get("queue", "")):
            why = f"no effect: only the policy for queue {ALL} says when messages return, or each networkConnector does"
            self.elements.finding(inner, inner.name, why, True)
            return
        replays = self.elements.true(inner, values, "replayWhenNoConsumers")
        self.replay = (replays, self.elements.whole(inner, values, "replayDelay", 0))

    # -- dead letters -------------------------------------------------------------------------------
    def _dead_letters(self, section: XmlElement, entry: XmlElement, found: dict[str, str]) -> None:
        def shared(node: XmlElement) -> None:
            names = ("deadLetterQueue", *STRATEGY)
            values = self._strategy_values(node, names)
            name = [values.get("deadLetterQueue", DEAD_LETTERS).removeprefix("queue://")]

            def inner(child: XmlElement) -> None:
                destination = only(child)
                if destination is not None:
                    name[0] = destination.attributes.get("physicalName", DEAD_LETTERS)

            self.elements.children(node, {"deadLetterQueue": inner})
            found["dead-letter-address"] = found["expiry-address"] = name[0]
            self.dead_letter_queues.setdefault(name[0], node)
            self._strategy(node, values, found)

        def discarding(node: XmlElement) -> None:
            self.elements.values(node, (), tables.DISCARDING_SILENT)
            found["dead-letter-address"] = found["expiry-address"] = ""

        self.elements.children(
            section,
            {
                "sharedDeadLetterStrategy": shared,
                "individualDeadLetterStrategy": lambda node: self._individual(node, entry, found),
                "discarding": discarding,
            },
        )

    def _individual(self, node: XmlElement, entry: XmlElement, found: dict[str, str]) -> None:
        """Reads dead-letter queues for each address: they are made at the first dead letter."""
        names = ("queuePrefix", "queueSuffix", "topicPrefix", "topicSuffix", *STRATEGY)
        values = self._strategy_values(node, names)
        kind = "queue" if "queue" in entry.attributes else "topic"
        found["dead-letter-address"] = found["expiry-address"] = INDIVIDUAL
        for what in ("dead-letter", "expiry"):
            found[f"auto-create-{what}-resources"] = "true"
            found[f"{what}-queue-prefix"] = values.get(f"{kind}Prefix", f"ActiveMQ.DLQ.{kind.capitalize()}.")
            found[f"{what}-queue-suffix"] = values.get(f"{kind}Suffix", "")
        self._strategy(node, values, found)

    def _strategy_values(self, node: XmlElement, names: tuple[str, ...]) -> dict[str, str]:
        return self.elements.values(node, names, {}, tables.DEAD_LETTERS_LOST, tables.DEAD_LETTERS_FIXED)

    def _strategy(self, node: XmlElement, values: dict[str, str], found: dict[str, str]) -> None:
        found["dead-letter-non-durable"] = str(self.elements.true(node, values, "processNonPersistent")).lower()
        expiration = self.elements.whole(node, values, "expiration", 0)
        found["dead-letter-expiry"] = str(expiration if expiration > 0 else -1)
        if not self.elements.true(node, values, "processExpired", True):
            found["expiry-address"] = ""
            found.pop("auto-create-expiry-resources", None)

    # -- redelivery ---------------------------------------------------------------------------------
    def redelivery_plugin(self, node: XmlElement) -> None:
        """Reads `<redeliveryPlugin>`, which delays redeliveries in the broker."""
        self.elements.values(node, (), {}, {}, tables.REDELIVERY_PLUGIN_FIXED)

        def entry(child: XmlElement) -> None:
            for match in self._matches(child):
                self._redelivery(child, match)

        def default(child: XmlElement) -> None:
            self.elements.children(child, {"redeliveryPolicy": lambda each: self._redelivery(each, ALL)})

        def policy_map(child: XmlElement) -> None:
            handlers = {
                "redeliveryPolicyMap": policy_map,
                "redeliveryPolicyEntries": lambda each: self.elements.children(each, {"redeliveryPolicy": entry}),
                "defaultEntry": default,
            }
            self.elements.children(child, handlers)

        self.elements.children(node, {"redeliveryPolicyMap": policy_map})

    def _redelivery(self, node: XmlElement, match: str) -> None:
        values = self.elements.values(node, tables.REDELIVERY, {}, {}, tables.REDELIVERY_FIXED)
        grows = self.elements.true(node, values, "useExponentialBackOff")
        initial = values.get("initialRedeliveryDelay", "1000")
        delay = values.get("redeliveryDelay", initial)
        if initial != delay and "initialRedeliveryDelay" in values and not grows:
            why = f"the first pause is redeliveryDelay, too: {delay} ms"
            self.elements.finding(node, "redeliveryPolicy initialRedeliveryDelay", why, True)
        longest = values.get("maximumRedeliveryDelay", "-1")
        attempts = self.elements.whole(node, values, "maximumRedeliveries", 6)
        percent = self.elements.whole(node, values, "collisionAvoidancePercent", 15)
        avoids = self.elements.true(node, values, "useCollisionAvoidance")
        found = {
            "redelivery-delay": initial if grows else delay,
            "redelivery-delay-multiplier": values.get("backOffMultiplier", "5.0") if grows else "1.0",
            "redelivery-collision-avoidance-factor": str(percent / 100) if avoids else "0.0",
            "max-redelivery-delay": str(ENDLESS_MS) if longest == "-1" else longest,
            "max-delivery-attempts": str(min(attempts + 1, INT_MAX) if attempts >= 0 else -1),
        }
        self._store(self.redeliveries, match, node, found)

    # -- the result ---------------------------------------------------------------------------------
    def finish(self) -> None:
        """Adds one address-setting for each match, and the shared dead-letter queues."""
        everywhere = self.policies[ALL]
        names = {name: True for setting in self.policies.values() for name in setting.values}
        for name in (
            "dead-letter-address", "expiry-address", "dead-letter-non-durable", "auto-delete-queues",
            "auto-delete-addresses",
        ):  # fmt: skip
            everywhere.values.setdefault(name, (tables.POLICY_DEFAULTS[name], everywhere.node))
        if self.fails:
            everywhere.values.setdefault("disk-full-policy", ("FAIL", everywhere.node))
        if self.wait_ms > 0:
            everywhere.values.setdefault("blocked-send-timeout", (str(self.wait_ms), everywhere.node))
        for name, text in self.everywhere.items():
            everywhere.values[name] = (text, everywhere.node)
        for match in dict.fromkeys([*self.policies, *self.redeliveries]):
            setting = self.policies.get(match) or self.redeliveries[match]
            stated = {name: text for name, (text, _) in setting.values.items()}
            if match in self.policies:
                missing = [name for name in names if name not in stated and (match == ALL or setting.states(name))]
                stated.update({name: tables.POLICY_DEFAULTS[name] for name in missing})
            if match in self.redeliveries:
                stated.update({name: text for name, (text, _) in self.redeliveries[match].values.items()})
            if self.drops:
                stated.update({name: "" for name in stated if name in ("dead-letter-address", "expiry-address")})
            entry = made(setting.node, "address-setting", match=match)
            entry.children = [made(setting.node, name, text) for name, text in stated.items()]
            self.core.add("address-settings", entry)
        if not self.drops:
            for name, node in self.dead_letter_queues.items():
                self.core.address(node, name, True)
        if INDIVIDUAL not in self.policies and "auto-create-dead-letter-resources" in names:
            entry = made(everywhere.node, "address-setting", match=INDIVIDUAL)
            for what in ("address", "queue"):
                entry.children.append(made(everywhere.node, f"default-{what}-routing-type", "ANYCAST"))
            self.core.add("address-settings", entry)
