"""Names of an activemq.xml (Classic 5.x and 6.x): what they become in broker.xml, or why they have no effect here.

`…_SILENT` are harmless: of a kind that no client can see (kernel/unseen_options.py), or with a case in
tests/config/harmless that compares what clients see. `…_FIXED` are harmless with one value alone, and have such a case,
too. `…_LOST` ask for something that clients of this node do not get: each says what.
"""

from __future__ import annotations

from typing import Final

from atalanta.kernel.unseen_options import (
    CACHES,
    JMX,
    JVM,
    LOGS,
    SOCKETS,
    STORE_LAYOUT,
    THREADS,
    FixedValue,
)


def _all(why: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), why)


def _fixed(here: str, otherwise: str, names: str) -> dict[str, FixedValue]:
    return {name: FixedValue(here, otherwise) for name in names.split()}


JAVA: Final = "Java classes cannot be loaded"
REMOVED: Final = "removed from Classic: for a pair, see <ha-policy> in docs/guide/high-availability.md"
NO_DUPLICATES: Final = "a message that a client sends again is found by its id, for every address"
# What to write instead of an element that says that there are other brokers.
WAYS_OF_PAIR: Final = (
    "for brokers with one directory that they all reach, write the same <kahaDB directory=…> in all files: one serves,"
    " the others wait; for a replicated group of brokers without one, convert the files and write <ha-policy>"
    " (docs/guide/high-availability.md)"
)
WAYS_OF_NETWORK: Final = "write <networkConnector uri=\"static:(tcp://HOST:PORT)\"/> (docs/guide/networks.md)"
# Attributes of a pair of Classic 5.0 to 5.7, where a slave is connected to its master.
PURE_PAIR: Final = ("waitForSlave", "passiveSlave", "shutdownOnMasterFailure", "shutdownOnSlaveFailure")

# <broker>
BROKER: Final = (
    "brokerName", "persistent", "dataDirectory", "dataDirectoryFile", "populateJMSXUserID", "useVirtualTopics",
    "advisorySupport", "schedulePeriodForDiskUsageCheck",
    "schedulePeriodForDestinationPurge", "schedulerSupport", "deleteAllMessagesOnStartup", "waitForSlave",
    "passiveSlave", "shutdownOnMasterFailure", "shutdownOnSlaveFailure", "masterConnectorURI", "networkConnectorURIs",
    "useVirtualDestSubs", "useVirtualDestSubsOnCreation",
)  # fmt: skip
BROKER_SILENT: Final[dict[str, str]] = {
    **_all(JMX, "useJmx brokerObjectName populateUserNameInMBeans mbeanInvocationTimeout enableStatistics"),
    **_all(
        THREADS,
        "dedicatedTaskRunner taskRunnerPriority virtualThreadTaskRunner persistenceThreadPriority startAsync"
        " networkConnectorStartAsync",
    ),
    **_all(
        JVM,
        "useShutdownHook useLoggingForShutdownErrors systemExitOnShutdown systemExitOnShutdownExitCode restartAllowed"
        " vmConnectorURI",
    ),
    **_all(STORE_LAYOUT, "tmpDataDirectory schedulerDirectory schedulerDirectoryFile storeOpenWireVersion"),
    "useAuthenticatedPrincipalForJMSXUserID": "JMSXUserID is always the name of the authenticated user",
    "keepDurableSubsActive": "durable subscriptions are always kept",
    "enableMessageExpirationOnActiveDurableSubs": "messages always expire",
    "adjustUsageLimits": "limits count as they are written",
    "offlineDurableSubscriberTaskSchedule": "no effect in Classic either, without offlineDurableSubscriberTimeout",
}
_NO_SPLIT: Final = "senders and consumers share the limits of <systemUsage>: nobody waits at a part of them"
_NO_CACHE: Final = "a temporary queue goes with its messages: a client that reconnects does not find them again"
_NO_MIRRORS: Final = "no message goes to a mirror: write a <divert> in broker.xml for each queue"
_KEPT_SUBSCRIPTIONS: Final = "durable subscriptions without a consumer are kept for ever, and their messages"
BROKER_FIXED: Final[dict[str, FixedValue]] = {
    **_fixed("false", _NO_SPLIT, "splitSystemUsageForProducersConsumers"),
    **_fixed("false", _NO_CACHE, "cacheTempDestinations"),
    **_fixed("false", _NO_MIRRORS, "useMirroredQueues"),
    "offlineDurableSubscriberTimeout": FixedValue("-1", _KEPT_SUBSCRIPTIONS),
    "anonymousProducerAdvisorySupport": FixedValue("false", "no advisory tells of producers without a destination"),
    "allowTempAutoCreationOnSend": FixedValue(
        "false", "a message to a temporary destination that does not exist is refused, and does not create it"
    ),
    "monitorConnectionSplits": FixedValue(
        "false", "a bridge's consumer for a client that has moved here stays until the bridge removes it"
    ),
    "rollbackOnlyOnAsyncException": FixedValue(
        "true", "a transaction with a message that was refused is rolled back, also if nobody waited for that message"
    ),
    "useLocalHostBrokerName": FixedValue("false", "the name of the host is not taken: write brokerName"),
    "maxPurgedDestinationsPerSweep": FixedValue("0", "all destinations without use are deleted at once"),
    "maxUncommittedCount": FixedValue("0", "a transaction with more messages is not refused"),
    "rejectDurableConsumers": FixedValue("false", "durable consumers are not refused"),
}
BROKER_LOST: Final[dict[str, str]] = {
    **_all(_NO_SPLIT, "producerSystemUsagePortion consumerSystemUsagePortion"),
    "timeBeforePurgeTempDestinations": _NO_CACHE,
    "useTempMirroredQueues": _NO_MIRRORS,
    "waitForSlaveTimeout": REMOVED,
    "transportConnectorURIs": "no port is opened: write the elements instead",
    "brokerId": "clients and other brokers are told the id of this node's journal",
    "diskUsageCheckRegrowThreshold": "the limit of the disk follows its size at once",
    "maxInflatedDataSize": "a compressed body is refused beyond 100 MiB",
    "maxSchedulerRepeatAllowed": "a message with more repetitions is not refused",
}
BROKER_CHILDREN_SILENT: Final[dict[str, str]] = {
    **_all(JMX, "managementContext adminView"),
    **_all(THREADS, "taskRunnerFactory persistenceTaskRunnerFactory"),
    **_all(STORE_LAYOUT, "tempDataStore jobSchedulerStore"),
    **_all(JVM, "shutdownHooks brokerContext"),
}
BROKER_CHILDREN_LOST: Final[dict[str, str]] = {
    **_all(f"destinations and messages are this broker's own: {JAVA}", "regionBroker destinationFactory"),
    **_all(_NO_SPLIT, "producerSystemUsage consumerSystemUsage"),
    "messageAuthorizationPolicy": f"messages are not withheld from consumers: {JAVA}",
    "ioExceptionHandler": "a node stops after a failed write, and its clients are disconnected: it never goes on",
    "jmsBridgeConnectors": "no bridge is made: write a core bridge (docs/guide/bridges.md)",
    "proxyConnectors": "connections are not forwarded to other brokers",
}

# Sections that are attributes, too: `plugins="#mine"`. What a node without the section does.
_ABSENT: Final = "the element that it names is not in this file"
BY_REFERENCE: Final[dict[str, dict[str, str]]] = {
    "broker": {
        "plugins": f"{_ABSENT}: nobody is asked for a password",
        "persistenceAdapter": f"{_ABSENT}: messages are kept below dataDirectory",
        "transportConnectors": f"{_ABSENT}: its connectors open no port",
        "networkConnectors": f"{_ABSENT}: no bridge is made",
        "destinationPolicy": f"{_ABSENT}: all destinations have the defaults",
        "destinations": f"{_ABSENT}: destinations are created by their first use",
        "destinationInterceptors": f"{_ABSENT}: virtual topics are those of the default, nothing is passed on",
        "systemUsage": f"{_ABSENT}: limits are the defaults",
        "sslContext": f"{_ABSENT}: connectors with TLS have no key",
    },
    "policyEntry": {
        "deadLetterStrategy": f"{_ABSENT}: dead letters go to ActiveMQ.DLQ",
        "pendingQueuePolicy": f"{_ABSENT}: messages beyond memoryLimit go to pages",
        "slowConsumerStrategy": f"{_ABSENT}: no consumer is closed",
        "pendingMessageLimitStrategy": f"{_ABSENT}: all messages of a slow subscriber are kept",
        "messageEvictionStrategy": f"{_ABSENT}: all messages of a slow subscriber are kept",
        "subscriptionRecoveryPolicy": f"{_ABSENT}: a subscription that asks for older messages gets none",
        "networkBridgeFilterFactory": f"{_ABSENT}: messages do not return over a bridge",
        "messageGroupMapFactory": f"{_ABSENT}: all groups are remembered",
        "dispatchPolicy": f"{_ABSENT}: each subscriber gets all messages",
    },
}

# <persistenceAdapter>: kahaDB and the others.
STORES: Final = (
    "kahaDB", "kahaDBStore", "mKahaDB", "levelDB", "replicatedLevelDB", "jdbcPersistenceAdapter", "journaledJDBC",
    "journalPersistenceAdapterFactory", "journalPersistenceAdapter", "amqPersistenceAdapter", "kahaPersistenceAdapter",
)  # fmt: skip
DATABASES: Final = (
    "jdbcPersistenceAdapter", "journaledJDBC", "journalPersistenceAdapterFactory", "journalPersistenceAdapter",
)  # fmt: skip
KAHADB_SILENT: Final[dict[str, str]] = {
    **_all(
        STORE_LAYOUT,
        "indexDirectory enableJournalDiskSyncs journalDiskSyncStrategy journalDiskSyncInterval indexCacheSize"
        " indexWriteBatchSize journalMaxWriteBatchSize checkpointInterval cleanupInterval cleanupOnStop"
        " concurrentStoreAndDispatchQueues concurrentStoreAndDispatchTopics ignoreMissingJournalfiles"
        " checkForCorruptJournalFiles checksumJournalFiles archiveDataLogs directoryArchive maxAsyncJobs"
        " forceRecoverIndex archiveCorruptedIndex indexLFUEvictionFactor useIndexLFRUEviction enableIndexDiskSyncs"
        " enableIndexRecoveryFile enableIndexPageCaching enableIndexWriteAsync compactAcksAfterNoGC"
        " compactAcksIgnoresStoreGrowth enableAckCompaction preallocationScope preallocationStrategy"
        " transactionIdTransformer brokerName stopOnError",
    ),
    **_all(NO_DUPLICATES, "failoverProducersAuditDepth maxFailoverProducersToTrack"),
    "enableSubscriptionStatistics": JMX,
}
KAHADB_FIXED: Final = {
    "purgeRecoveredXATransactionStrategy": FixedValue(
        "never", "a prepared transaction stays prepared until its transaction manager ends it"
    ),
}
# The lock of a store: of the store element itself.
FAIL_IF_LOCKED: Final = ("failIfLocked", "failIfDatabaseIsLocked")  # of a locker, and of a store in older files
USE_LOCK: Final = ("useLock", "useDatabaseLock")
LOCK_WAITS: Final = ("lockKeepAlivePeriod", "databaseLockedWaitDelay", "lockAcquireSleepInterval")
LOCK: Final = (*USE_LOCK, *LOCK_WAITS, FAIL_IF_LOCKED[1])
ALWAYS_LOCKED: Final = "a store is always protected from a second broker"
NO_WAIT: Final = "a slave takes over at once when its master ends; lease_ms in atalanta.toml counts for a lost host"
_LOCK_FOLDER: Final = "the lock is in the folder of the store, as in Classic"
LOCK_SILENT: Final = _all(NO_WAIT, " ".join(LOCK_WAITS))
LOCKER_SILENT: Final = {"lockAcquireSleepInterval": NO_WAIT, "directory": _LOCK_FOLDER, "name": _LOCK_FOLDER}
# Above 64 MiB: a file of the journal is filled before its first message.
FILE_SIZE_SILENT: Final = {"journalMaxFileLength": STORE_LAYOUT}
KAHADB_CHILDREN_SILENT: Final = {"sharedFileLocker": _LOCK_FOLDER}
STORES_SILENT: Final = {"kahaDB": STORE_LAYOUT}

# <transportConnector>
CONNECTOR: Final = (
    "name", "uri", "discoveryUri", "updateClusterClients", "rebalanceClusterClients", "updateClusterClientsOnRemove",
    "updateClusterFilter", "allowLinkStealing", "autoStart",
)  # fmt: skip
CLUSTER_CLIENTS: Final = (
    "updateClusterClients", "rebalanceClusterClients", "updateClusterClientsOnRemove", "updateClusterFilter",
)  # fmt: skip
CONNECTOR_SILENT: Final[dict[str, str]] = {
    **_all(THREADS, "disableAsyncDispatch enableStatusMonitor"),
    **_all(LOGS, "warnOnRemoteClose displayStackTrace"),
    "auditNetworkProducers": NO_DUPLICATES,
}
CONNECTOR_LOST: Final = {
    **_all(
        "producers and consumers of a connection are not counted",
        "maximumProducersAllowedPerConnection maximumConsumersAllowedPerConnection",
    ),
    "messageAuthorizationPolicy": f"messages are not withheld from consumers: {JAVA}",
    "publishedAddressPolicy": "clients are told the host of the acceptor: publishedHost in broker.xml says another one",
}
# Word of the scheme -> its protocols. OpenWire's acceptors serve CORE, too: the commands of Atalanta connect there.
PROTOCOLS: Final[dict[str, str]] = {
    "tcp": "CORE,OPENWIRE",
    "nio": "CORE,OPENWIRE",
    "ssl": "CORE,OPENWIRE",
    "auto": "CORE,OPENWIRE,STOMP,AMQP,MQTT",
    "stomp": "STOMP",
    "amqp": "AMQP",
    "mqtt": "MQTT",
    "ws": "STOMP,MQTT,AMQP",
    "wss": "STOMP,MQTT,AMQP",
}
# What may follow the first word: nio+ssl, stomp+nio+ssl, amqp+wss.
SCHEME_WORDS: Final = ("nio", "ssl", "ws", "wss")
SECURE: Final = ("ssl", "wss")
SCHEMES_LOST: Final[dict[str, str]] = {
    "vm": "there are no connections within the process",
    "peer": "there are no connections within the process",
    "http": "OpenWire over HTTP is not supported",
    "https": "OpenWire over HTTP is not supported",
    "udp": "only connections over TCP are accepted",
    "multicast": "only connections over TCP are accepted",
}
# Option of the URI -> parameter of the acceptor.
OPTIONS: Final[dict[str, str]] = {
    "maximumConnections": "connectionsAllowed",
    "backlog": "backlog",
    "transport.tcpNoDelay": "tcpNoDelay",
    "tcpNoDelay": "tcpNoDelay",
    "needClientAuth": "needClientAuth",
    "wantClientAuth": "wantClientAuth",
    "transport.needClientAuth": "needClientAuth",
    "transport.wantClientAuth": "wantClientAuth",
    "transport.enabledProtocols": "enabledProtocols",
    "transport.enabledCipherSuites": "enabledCipherSuites",
    "wireFormat.maxInactivityDuration": "maxInactivityDuration",
    "wireFormat.maxInactivityDurationInitalDelay": "maxInactivityDurationInitalDelay",
    "maxInactivityDuration": "maxInactivityDuration",
    "maxInactivityDurationInitalDelay": "maxInactivityDurationInitalDelay",
    "transport.useKeepAlive": "useKeepAlive",
}
# Option of the URI -> parameter of the acceptor for STOMP.
STOMP_OPTIONS: Final = {
    "transport.defaultHeartBeat": "stompDefaultHeartBeat",
    "transport.hbGracePeriodMultiplier": "heartBeatToConnectionTtlModifier",
}
# Limits of a STOMP frame; the lowest one counts for its body.
STOMP_SIZES: Final = (
    "transport.maxDataLength", "wireFormat.maxDataLength", "transport.maxFrameSize", "wireFormat.maxFrameSize",
)  # fmt: skip
# Protocol -> its parameter for wireFormat.maxFrameSize.
FRAME_SIZES: Final = {"OPENWIRE": "maxFrameSize", "MQTT": "maximumPacketSize"}
_NEGOTIATED: Final = "each client and the broker agree on it"
OPTIONS_SILENT: Final[dict[str, str]] = {
    **_all(
        _NEGOTIATED,
        "wireFormat.tightEncodingEnabled wireFormat.cacheEnabled wireFormat.cacheSize wireFormat.sizePrefixDisabled"
        " wireFormat.stackTraceEnabled wireFormat.tcpNoDelayEnabled wireFormat.version wireFormat.host",
    ),
    **_all(
        SOCKETS,
        "socketBufferSize transport.socketBufferSize keepAlive transport.keepAlive soLinger transport.soLinger"
        " soTimeout transport.soTimeout connectionTimeout transport.connectionTimeout trafficClass"
        " transport.trafficClass transport.typeOfService transport.diffServ transport.ioBufferSize",
    ),
    **_all(
        THREADS,
        "daemon stackSize joinOnStop useQueueForAccept transport.threadName transport.closeAsync"
        " transport.selectorManager maxConnectionThreadPoolSize",
    ),
    **_all(JMX, "transport.dynamicManagement dynamicManagement jmxPort transport.jmxPort"),
    **_all(
        LOGS, "trace transport.trace logWriterName transport.logWriterName startLogging transport.startLogging"
    ),
    **_all(
        "of AMQP or MQTT: a connector for these opens no port here, and is named",
        "transport.transformer transport.maxFrameSize transport.subscriptionStrategy transport.subscriptionPrefetch"
        " transport.activeMQSubscriptionPrefetch transport.publishDollarTopics transport.defaultKeepAlive"
        " transport.producerCredit transport.prefetch transport.idleTimeout wireFormat.idleTimeout"
        " wireFormat.connectAttemptTimeout wireFormat.allowNonSaslConnections wireFormat.transformer"
        " wireFormat.producerCredit transport.wireFormat.maxFrameSize wireFormat.maxFrameSize",
    ),
    **_all(
        "of STOMP, which this connector does not serve",
        "transport.hbGracePeriodMultiplier transport.defaultHeartBeat transport.maxDataLength wireFormat.maxDataLength",
    ),
}
_SLOW_READERS: Final = "the connection of a client that does not read is not closed"
_HOST_NAMES: Final = "the name in the certificate of a client is not compared with its host"
OPTIONS_FIXED: Final[dict[str, FixedValue]] = {
    **_fixed("0", _SLOW_READERS, "soWriteTimeout transport.soWriteTimeout"),
    **_fixed("false", _HOST_NAMES, "verifyHostName transport.verifyHostName transport.socket.verifyHostName"),
    "wireFormat.maxFrameSizeEnabled": FixedValue("true", "frames that are larger than maxFrameSize are refused"),
    "wireFormat.includePlatformDetails": FixedValue("false", "clients are not told about the machine of the broker"),
    "minmumWireFormatVersion": FixedValue("0", "clients with an older version of OpenWire are not refused"),
    "http.enableTrace": FixedValue("false", "TRACE of HTTP is refused"),
}
_NO_JETTY: Final = "there is no Jetty"
OPTIONS_LOST: Final[dict[str, str]] = {
    **_all(
        "a frame of a WebSocket may have any length: only the body of a STOMP frame in it has a limit",
        "websocket.maxTextMessageSize websocket.maxBinaryMessageSize",
    ),
    "jetty.config": f"the file is not read: {_NO_JETTY}",
    "wireFormat.providerName": "clients are told the name of this software",
}

# <policyEntry>: attribute -> element of <address-setting>.
POLICY_SIZES: Final = {"memoryLimit": "max-size-bytes"}
POLICY_PLAIN: Final = {
    "consumersBeforeDispatchStarts": "default-consumers-before-dispatch",
    "timeBeforeDispatchStarts": "default-delay-before-dispatch",
    "allConsumersExclusiveByDefault": "default-exclusive-queue",
}
# Attribute of the policy of a queue or of a topic -> element of <address-setting>.
POLICY_PREFETCHES: Final = {
    "queue": {"queuePrefetch": "openwire-queue-prefetch", "queueBrowserPrefetch": "openwire-browser-prefetch"},
    "topic": {"topicPrefetch": "openwire-topic-prefetch", "durableTopicPrefetch": "openwire-durable-prefetch"},
}
PREFETCHES: Final = tuple(name for of_kind in POLICY_PREFETCHES.values() for name in of_kind)
DISPATCH_DELAY_MS: Final = "1000"  # of consumersBeforeDispatchStarts without a time
POLICY_OTHER: Final = (
    "queue", "topic", "tempQueue", "tempTopic", "producerFlowControl", "sendFailIfNoSpace",
    "sendFailIfNoSpaceAfterTimeout", "expireMessagesPeriod", "gcInactiveDestinations", "inactiveTimeoutBeforeGC",
    "inactiveTimoutBeforeGC", "alwaysRetroactive", "messageGroupMapFactoryType", "persistJMSRedelivered",
    "usePrefetchExtension",
)  # fmt: skip
POLICY_SILENT: Final[dict[str, str]] = {
    **_all(
        NO_DUPLICATES, "enableAudit maxProducersToAudit maxAuditDepth maxQueueAuditDepth sendDuplicateFromStoreToDLQ"
    ),
    **_all(
        CACHES,
        "useCache maxPageSize cursorMemoryHighWaterMark reduceMemoryFootprint doOptimzeMessageStorage"
        " optimizeMessageStoreInFlightLimit lazyDispatch",
    ),
    **_all(JMX, "advancedNetworkStatisticsEnabled advancedMessageStatisticsEnabled useTopicSubscriptionInflightStats"),
    "optimizedDispatch": THREADS,
    "blockedProducerWarningInterval": LOGS,
    "maxBrowsePageSize": "a browser sees all messages",
    "maxExpirePageSize": "all messages expire",
}
POLICY_FIXED: Final[dict[str, FixedValue]] = {
    "prioritizedMessages": FixedValue("true", "messages of a higher priority always overtake those of a lower one"),
    "useConsumerPriority": FixedValue("true", "consumers of a lower priority get messages when the others are full"),
    "strictOrderDispatch": FixedValue("false", "consumers get messages in turn, not one until its prefetch is full"),
    "storeUsageHighWaterMark": FixedValue("100", "senders wait at the limit of the disk, and not at a part of it"),
    "gcWithNetworkConsumers": FixedValue("false", "a queue that only bridges consume is not deleted"),
    "allowTempDestinationStealing": FixedValue(
        "false", "only its own connection consumes from a temporary destination"
    ),
    "maxDestinations": FixedValue("-1", "destinations are not counted"),
    "advisoryForSlowConsumers": FixedValue(
        "false", "no SlowConsumer advisory: slow-consumer-policy of broker.xml, with NOTIFY, sends it"
    ),
    "advisoryForFastProducers": FixedValue("false", "no FastProducer advisory"),
    "advisoryForDiscardingMessages": FixedValue("false", "no MessageDiscarded advisory"),
    "advisoryWhenFull": FixedValue("false", "no FULL advisory"),
    "advisoryForDelivery": FixedValue("false", "no MessageDelivered advisory"),
    "advisoryForConsumed": FixedValue("false", "no MessageConsumed advisory"),
    "advisoryForDispatched": FixedValue("false", "no MessageDispatched advisory"),
    "includeBodyForAdvisory": FixedValue("true", "the advisory of an expired message has its body"),
    "sendAdvisoryIfNoConsumers": FixedValue("false", "no NoConsumer advisory, with or without a dead letter"),
}
POLICY_LOST: Final = {
    "minimumMessageSize": "a message counts with its own size for memoryLimit, a small one with less",
}
POLICY_CHILDREN_LOST: Final[dict[str, str]] = {
    "slowConsumerStrategy": "no consumer is closed: see slow-consumer-policy in broker.xml",
    "messageInterceptorStrategy": f"messages are not changed: {JAVA}",
}
# <pendingSubscriberPolicy>, <pendingDurableSubscriberPolicy>: elements in them.
CURSORS_SILENT: Final[dict[str, str]] = _all(
    CACHES, "fileCursor storeDurableSubscriberCursor fileDurableSubscriberCursor"
)
# Without producerFlowControl senders do not wait in Classic, either.
CURSORS_WITHOUT_FLOW_SILENT: Final[dict[str, str]] = {**CURSORS_SILENT, **_all(CACHES, "vmCursor vmDurableCursor")}
CURSORS_LOST: Final[dict[str, str]] = _all(
    "senders never wait for subscribers of topics: messages beyond memoryLimit go to pages",
    "vmCursor vmDurableCursor",
)
# <dispatchPolicy>: elements in it. A queue has no use for it in Classic either.
DISPATCH_SILENT: Final[dict[str, str]] = _all(
    "each subscriber of a topic gets all messages, in their order",
    "roundRobinDispatchPolicy simpleDispatchPolicy strictOrderDispatchPolicy priorityDispatchPolicy",
)
DISPATCH_LOST: Final[dict[str, str]] = {
    "priorityNetworkDispatchPolicy": "a message goes to the subscriptions of all bridges, and not to the nearest alone",
    "clientIdFilterDispatchPolicy": "a message goes to all subscribers, whatever its property PTP_CLIENTID says",
}
EVICTION_SILENT: Final = {"evictExpiredMessagesHighWatermark": "expired messages always go first"}
GROUPS_CACHED: Final = 1024  # Classic's default
GROUPS_WHY: Final = (
    "all groups are remembered, the idle ones, too: new groups go to the consumers with the fewest of all, not of the"
    " latest"
)
GROUPS_SILENT: Final = {"messageGroupMapFactory cached": "all groups are remembered"}
RECOVERY_SILENT: Final = {"useSharedBuffer": "all subscriptions of a topic share its buffer"}
GC_SILENT: Final = {
    "gcInactiveDestinations": "no effect in Classic either, without schedulePeriodForDestinationPurge of <broker>"
}
# What an <address-setting> says that another policy sets: in Classic, only the nearest policy counts.
POLICY_DEFAULTS: Final[dict[str, str]] = {
    "max-size-bytes": "-1",
    "address-full-policy": "PAGE",
    "disk-full-policy": "BLOCK",
    "blocked-send-timeout": "-1",
    "default-consumers-before-dispatch": "0",
    "default-delay-before-dispatch": "-1",
    "default-exclusive-queue": "false",
    "pending-message-limit": "-1",
    "pending-message-prefetch-rate": "-1.0",
    "pending-message-eviction": "OLDEST",
    "pending-message-eviction-property": "",
    "default-group-buckets": "-1",
    "retroactive-message-count": "0",
    "retroactive-on-request": "false",
    "retroactive-message-age": "-1",
    "retroactive-message-bytes": "-1",
    "retroactive-marked-only": "false",
    "openwire-prefetch-extension": "true",
    "openwire-queue-prefetch": "1000",
    "openwire-browser-prefetch": "500",
    "openwire-topic-prefetch": "32766",
    "openwire-durable-prefetch": "100",
    "dead-letter-address": "ActiveMQ.DLQ",
    "expiry-address": "ActiveMQ.DLQ",
    "dead-letter-non-durable": "false",
    "dead-letter-expiry": "-1",
    "auto-create-dead-letter-resources": "false",
    "auto-create-expiry-resources": "false",
    "dead-letter-queue-prefix": "DLQ.",
    "dead-letter-queue-suffix": "",
    "expiry-queue-prefix": "EXP.",
    "expiry-queue-suffix": "",
    "auto-delete-queues": "false",
    "auto-delete-addresses": "false",
    "auto-delete-queues-delay": "0",
    "auto-delete-addresses-delay": "0",
}
# Of topics alone, and of queues alone: the policy of the other kind says nothing of them.
OF_TOPICS: Final = (
    "pending-message-limit", "pending-message-prefetch-rate", "pending-message-eviction",
    "pending-message-eviction-property", "openwire-topic-prefetch", "openwire-durable-prefetch",
)  # fmt: skip
OF_QUEUES: Final = ("openwire-queue-prefetch", "openwire-browser-prefetch")
_EACH_DEAD_LETTER: Final = (
    "a message that several subscriptions reject, or that is rejected again after it was sent again, is a dead letter"
    " each time"
)
DEAD_LETTERS_FIXED: Final[dict[str, FixedValue]] = {
    **_fixed("true", "dead letters wait in a queue", "useQueueForQueueMessages useQueueForTopicMessages"),
    "enableAudit": FixedValue("false", _EACH_DEAD_LETTER),
    "destinationPerDurableSubscriber": FixedValue(
        "false", "the dead letters of all durable subscriptions of a topic are in one queue"
    ),
}
DEAD_LETTERS_LOST: Final = _all(_EACH_DEAD_LETTER, "maxAuditDepth maxProducersToAudit maxDestinationsToAudit")
DISCARDING_SILENT: Final = _all(
    "all dead letters are dropped",
    "processExpired processNonPersistent expiration enableAudit maxAuditDepth maxProducersToAudit"
    " maxDestinationsToAudit useQueueForQueueMessages useQueueForTopicMessages destinationPerDurableSubscriber"
    " deadLetterQueue",
)
# <destinations>
DESTINATIONS_LOST: Final = _all("not made: clients create temporary destinations", "tempQueue tempTopic")

# <destinationInterceptors>
VIRTUAL_TOPIC: Final = ("name", "prefix", "selectorAware", "local")
VIRTUAL_SILENT: Final[dict[str, str]] = {
    "concurrentSend": THREADS,
    "transactedSend": "a message enters all its queues at once, or none",
}
VIRTUAL_FIXED: Final[dict[str, FixedValue]] = {
    "setOriginalDestination": FixedValue("true", "a consumer sees its queue as the destination of a message"),
    "dropOnResourceLimit": FixedValue("false", "a full queue refuses or holds the sender, and drops nothing"),
    "copyMessage": FixedValue("true", "a message has the destination where it is, not the one where it was sent"),
}
VIRTUAL_LOST: Final = {
    "postfix": "queues of a virtual topic are known by their prefix",
}
COMPOSITE: Final = ("name", "forwardOnly", "sendWhenNotMatched")

# <plugins>
PLUGINS_SILENT: Final[dict[str, str]] = {"loggingBrokerPlugin": LOGS}
PLUGINS_LOST: Final[dict[str, str]] = {
    **_all(f"not loaded, nothing of what it does is done: {JAVA}", "camelRoutesBrokerPlugin connectionDLQPlugin"),
    **_all(
        "nothing is written to its file", "connectionDotFilePlugin destinationDotFilePlugin"
    ),
    **_all("nobody is told of messages at its address", "multicastTraceBrokerPlugin udpTraceBrokerPlugin"),
    "traceBrokerPathPlugin": "messages have no property BrokerPath with the brokers on their way",
    "destinationsPlugin": "destinations are kept in the journal, and not read from its file",
    "destinationPathSeparatorPlugin": "names with '/' are no patterns: see <wildcard-addresses> in broker.xml",
    **_all(
        "messages stay durable or not as they were sent", "forcePersistencyModeBrokerPlugin forcePersistencyModeBroker"
    ),
}
# The plugin for selectors of virtual topics, in both of its names.
SELECTOR_CACHES: Final = ("virtualSelectorCacheBrokerPlugin", "subQueueSelectorCacheBrokerPlugin")
SELECTOR_CACHE_SILENT: Final = _all(
    "the selectors of a queue with selectorAware are kept in the journal", "persistFile persistInterval"
)
SELECTOR_CACHE_FIXED: Final = {
    "singleSelectorPerDestination": FixedValue("false", "a queue takes what any of its consumers selects"),
    "ignoreWildcardSelectors": FixedValue("false", "a consumer that selects everything counts, too"),
}
TIME_STAMPS_LOST: Final = {
    "futureOnly": "the times of messages are those of their senders, of the past or of the future",
    "processNetworkMessages": "messages of bridges keep their times",
}
TIME_STAMPS: Final = (
    "JMSTimestamp and the expiry of a message are counted by the clock of its sender, not by that of the broker"
)
DISCARDING_PLUGIN_SILENT: Final = {"reportInterval": LOGS}
DISCARDING_PLUGIN_LOST: Final = {"dropOnly": "names are not chosen by patterns: dead letters are kept"}
# With dropAll they say nothing more.
DROPS_TEMPORARY: Final = ("dropTemporaryQueues", "dropTemporaryTopics")
DROPS_SILENT: Final = _all("all dead letters are dropped", " ".join(DROPS_TEMPORARY))
KEPT_TEMPORARY: Final = "the dead letters of temporary destinations are kept"
REDELIVERY_PLUGIN_FIXED: Final = {
    "fallbackToDeadLetter": FixedValue("true", "a message without a redelivery policy goes to the dead letters"),
    "sendToDlqIfMaxRetriesExceeded": FixedValue(
        "true", "a message that was redelivered too often goes to the dead letters, and is not dropped"
    ),
}
REDELIVERY_FIXED: Final = {
    "preDispatchCheck": FixedValue("true", "a message with too many redeliveries is not delivered once more"),
}
# Classes of principals: which of a login module's are groups.
GROUP_CLASS_FIXED: Final = {
    "groupClass": FixedValue(
        "org.apache.activemq.jaas.groupprincipal", "the roles that login modules give count, of whatever class"
    ),
}
JAAS_FIXED: Final = {
    "discoverLoginConfig": FixedValue("true", "the login.config beside this file is read, and no other one"),
}
REDELIVERY: Final = (
    "queue", "topic", "maximumRedeliveries", "initialRedeliveryDelay", "redeliveryDelay", "useExponentialBackOff",
    "backOffMultiplier", "maximumRedeliveryDelay", "useCollisionAvoidance", "collisionAvoidancePercent",
)  # fmt: skip

# <networkConnector>
NETWORK_CHILDREN_LOST: Final = {
    **_all(f"all messages go over the bridge, in the usual way: {JAVA}", "bridgeFactory connectionFilter"),
    "sslContext": "bridges use that of the broker",
}

NETWORK_SILENT: Final = _all("as in Classic: the broker's own is taken", "brokerName brokerURL")

# <systemUsage>
_AT_ONCE: Final = "senders go on as soon as there is room"
USAGE_SILENT: Final = {
    **_all(_AT_ONCE, "percentUsageMinDelta usagePortion pollingTime name"),
    "percentOfJvmHeap": JVM,
    "store": STORE_LAYOUT,
}
USAGE_LOST: Final = {"total": "the limit is a share of the whole disk"}
SYSTEM_USAGE_SILENT: Final = {"checkLimitsLogLevel": LOGS, "name": _AT_ONCE}
SYSTEM_USAGE_CHILDREN_LOST: Final = _all(
    "one limit for the whole disk: senders wait when it is full by max-disk-usage (that of <storeUsage>, else 90"
    " percent)",
    "tempUsage jobSchedulerUsage",
)
DISK_BYTES: Final = (
    "a limit in bytes does not count: senders wait when the disk is full by 90 percent, or by percentLimit"
)

# <sslContext>: attribute -> parameter of the acceptor.
SSL: Final = {
    "keyStore": "keyStorePath",
    "keyStorePassword": "keyStorePassword",
    "keyStoreType": "keyStoreType",
    "trustStore": "trustStorePath",
    "trustStorePassword": "trustStorePassword",
    "trustStoreType": "trustStoreType",
    "crlPath": "crlPath",
}
SSL_SILENT: Final = _all(JVM, "keyStoreAlgorithm trustStoreAlgorithm secureRandomAlgorithm protocol provider")

# Parts of the names of classes that decide who may do what.
SECURITY_CLASSES: Final = ("security", "authenti", "authoriz", "login", "jaas", "shiro", "ldap")

# Beside the broker: parts of the names of classes.
OUTSIDE_SILENT: Final[dict[str, str]] = {
    **_all(LOGS, "log.log4j log4j.Log4j logging."),
    **_all(JMX, "jmx.export. MBeanServer"),
}
OUTSIDE_LOST: Final[dict[str, str]] = {
    "camelContext": "no route runs: messages are not taken, changed or passed on by Camel",
    "commandAgent": "nobody answers on the topic ActiveMQ.Agent: see `atalanta --help`",
    "import": "not read",
    "unused": "not read: nothing in <broker> refers to it",
    "jetty": "no web console, and no HTTP or REST for clients: see `atalanta run --web`",
    "bean": f"not started, nothing of what it does is done: {JAVA}",
}
