"""A node with a shared store: its wait for the store, and the epochs that it serves."""
