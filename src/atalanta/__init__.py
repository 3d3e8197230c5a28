"""Atalanta: a clustered message broker for users of ActiveMQ Artemis."""

__version__ = "0.1.0"
