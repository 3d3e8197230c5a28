"""The active member of a group: what it sends to its followers, and what it waits for."""
