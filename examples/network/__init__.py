"""The network demo: `make demo-network`."""
