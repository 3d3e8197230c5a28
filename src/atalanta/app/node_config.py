"""The configuration of the node itself, from the files."""

from __future__ import annotations

import uuid

from atalanta.app.startup_error import StartupError
from atalanta.cluster.core_bridges.config import CoreBridgeSettings
from atalanta.config.configuration import Configuration
from atalanta.config.native.toml_file import own_file
from atalanta.config.sections.connection_routers import routers_config
from atalanta.kernel.security.security import Security
from atalanta.kernel.settings.effective_settings import settings_repository
from atalanta.node.config import NodeConfig
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.callables import CallableError, load_callable


def node_config(configuration: Configuration, security: Security, node_id: uuid.UUID) -> NodeConfig:
    """Returns the configuration of the node itself."""
    return NodeConfig(
        node_id=str(node_id),
        broker=configuration.broker,
        settings=settings_repository(configuration.broker),
        security=security,
        journal=configuration.journal.journal_config(node_id.bytes),
        acceptors=configuration.acceptors,
        cluster=configuration.cluster_settings(),
        own=configuration.own,
        grouping=configuration.grouping,
        bridges=bridge_settings(configuration),
        routers=routers_config(configuration),
        networks=configuration.networks,
    )


def bridge_settings(configuration: Configuration) -> CoreBridgeSettings:
    """Returns the bridges with the Python functions that atalanta.toml names; StartupError if one cannot be loaded."""
    settings = configuration.bridge_settings()
    for name, own in configuration.own.bridges.items():
        if own.transformer is None:
            continue
        try:
            settings.transforms[name] = load_callable(own.transformer, configuration.users_folder)
        except CallableError as error:
            line = f"{own_file(configuration.path)}: [bridges.{name}] transformer: {error}"
            raise StartupError(exit_codes.BAD_CONFIGURATION, [line]) from error
    return settings
