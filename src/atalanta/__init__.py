"""Atalanta: a clustered message broker at home in the ActiveMQ world."""

__version__ = "0.1.0"
