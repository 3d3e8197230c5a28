"""Replicated groups: which of several files describe one, what its loss of hosts means, and the checks of it."""
