"""Servers found by UDP or JGroups, and the choice among them."""
