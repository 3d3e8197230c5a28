"""Every option does what its description says of it: it is used, or it is listed as without effect."""

from __future__ import annotations

import ast
from dataclasses import fields
from functools import cache
from typing import Any

import pytest

from atalanta.cluster.config import (
    BroadcastGroupConfig,
    ClusterConnectionConfig,
    DiscoveryGroupConfig,
)
from atalanta.cluster.connection_routers.config import CacheConfig, PoolConfig, RouterConfig
from atalanta.cluster.core_bridges.config import CoreBridgeConfig
from atalanta.cluster.grouping.config import GroupingHandlerConfig
from atalanta.cluster.native_config import OwnBridge, OwnSettings
from atalanta.ha.policy import HaPolicy
from atalanta.ha.policy_elements import SharedStoreBackup, SharedStorePrimary
from atalanta.kernel.routing.divert_config import DivertConfig
from atalanta.kernel.routing.wildcard import WildcardConfiguration
from atalanta.kernel.settings.broker_config import BrokerConfig, QueueConfig
from atalanta.kernel.settings.repository import AddressSettings
from atalanta.runtime.network_check.config import NetworkCheckConfig
from atalanta.store.config import JournalOptions
from atalanta.wire.endpoint import AcceptorConfig, ConnectorConfig
from atalanta.wire.tls_config import TlsConfig
from tests.source_tree import product

DESCRIBED: list[type[Any]] = [
    BrokerConfig,
    QueueConfig,
    DivertConfig,
    AddressSettings,
    WildcardConfiguration,
    JournalOptions,
    NetworkCheckConfig,
    AcceptorConfig,
    ConnectorConfig,
    TlsConfig,
    BroadcastGroupConfig,
    DiscoveryGroupConfig,
    ClusterConnectionConfig,
    GroupingHandlerConfig,
    CoreBridgeConfig,
    OwnBridge,
    RouterConfig,
    PoolConfig,
    CacheConfig,
    OwnSettings,
    HaPolicy,
    SharedStorePrimary,
    SharedStoreBackup,
]


# Names of options that other things have, too.
SHARED = {"local_bind_port", "client_id"}


@cache
def attributes_by_module() -> dict[str, frozenset[str]]:
    """Module -> names it reads as `x.name`."""
    found: dict[str, frozenset[str]] = {}
    for source in product():
        found[source.module] = frozenset(
            node.attr
            for node in ast.walk(source.tree)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
        )
    return found


def read_attributes(without: str) -> set[str]:
    """Names read anywhere in the package but in the module that declares them."""
    modules = attributes_by_module()
    return {name for module in modules if module != without for name in modules[module]}


@pytest.mark.parametrize("described", DESCRIBED)
def test_supported_options_are_used(described: type[Any]) -> None:
    module = described.__module__.removeprefix("atalanta.")
    used = read_attributes(module)
    if described in (QueueConfig, JournalOptions, OwnSettings):
        # Their own methods turn them into what the kernel and the store take.
        used |= read_attributes("")
    silent = [
        entry.name
        for entry in fields(described)
        if entry.metadata and entry.metadata["supported"] and entry.name not in used
    ]
    assert not silent, f"nobody reads {silent}: use them, or declare them supported=False"


@pytest.mark.parametrize("described", DESCRIBED)
def test_options_without_effect_are_not_used(described: type[Any]) -> None:
    if described is QueueConfig:
        return  # its names are those of queue attributes in other places
    used = read_attributes(described.__module__.removeprefix("atalanta."))
    used_after_all = [
        entry.name
        for entry in fields(described)
        if entry.metadata and not entry.metadata["supported"] and entry.name in used - SHARED
    ]
    assert not used_after_all, f"declared supported=False, but read: {used_after_all}"
