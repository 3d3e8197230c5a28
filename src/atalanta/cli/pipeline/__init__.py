"""The work of `atalanta pipeline`."""
