"""Bridges of a network of brokers: what flows from this broker to another one, on a connection of either."""
