"""Commands for high availability."""
