"""The node's HTTP endpoints: metrics and health."""
