"""The nodes of a cluster as one user of the console sees them: connections, lists, actions."""
