"""Cluster connections: members, remote bindings, bridges to peers, redistribution."""
