"""The messages of JGroups clusters, as far as nodes and clients that are no members send or hear them."""
