"""A node: its configuration, its parts and the inputs that a shell calls."""
