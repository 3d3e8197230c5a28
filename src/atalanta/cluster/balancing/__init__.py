"""Rebalancing of clients among the members of a cluster."""
